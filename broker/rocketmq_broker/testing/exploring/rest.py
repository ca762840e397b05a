"""What a world still waits for after its faults: transactions without a decision, messages that no consumer has handled."""

from __future__ import annotations

from collections.abc import Iterator

from rocketmq_broker.message import topics
from rocketmq_broker.testing.transactions import Inspection


def unsettled_at(broker: Inspection) -> Iterator[str]:
    """Yields in words what the broker has that is neither decided nor handled."""
    for transaction in broker.pending():
        keys = ", ".join(transaction.keys) or transaction.transaction_id
        yield f"the transaction of {transaction.producer_group} with {keys} is undecided after {transaction.checks} check-backs"
    if delayed := broker.count_delayed():
        yield f"{delayed} messages wait for the end of their delay"
    for name in sorted(broker.topics()):
        if name.startswith(topics.RETRY_PREFIX):
            yield from _unhandled_by(broker, name.removeprefix(topics.RETRY_PREFIX))


def _unhandled_by(broker: Inspection, group: str) -> Iterator[str]:
    for topic in broker.subscriptions(group):
        if count := broker.count_unhandled(group, topic):
            yield f"{count} messages of {topic} wait for the consumer group {group}"
    if count := broker.count_unhandled(group):
        yield f"{count} messages wait for the consumer group {group}"
