"""Finds the unfinished work of a simulated run after its faults: undecided transactions and unconsumed messages."""

from collections.abc import Iterator

from rocketmq_broker.message import topics
from rocketmq_broker.testing.simulation.page.markup import counted
from rocketmq_broker.testing.transactions import Inspection


def unsettled_at(broker: Inspection) -> Iterator[str]:
    """Yields a description of each undecided transaction and of each group with unconsumed messages."""
    for transaction in broker.pending():
        keys = ", ".join(transaction.keys) or transaction.transaction_id
        asked = counted(transaction.checks, "check-back")
        yield f"the transaction of {transaction.producer_group} with {keys} is undecided after {asked}"
    if delayed := broker.count_delayed():
        yield f"the broker has {counted(delayed, 'delayed message')}"
    for name in sorted(broker.topics()):
        if name.startswith(topics.RETRY_PREFIX):
            yield from _unhandled_by(broker, name.removeprefix(topics.RETRY_PREFIX))


def _unhandled_by(broker: Inspection, group: str) -> Iterator[str]:
    for topic in broker.subscriptions(group):
        if count := broker.count_unhandled(group, topic):
            yield f"the consumer group {group} has not consumed {counted(count, 'message')} of {topic}"
    if not broker.subscriptions(group) and (count := broker.count_unhandled(group)):
        yield f"the consumer group {group} has no members, and has not consumed {counted(count, 'message')}"
