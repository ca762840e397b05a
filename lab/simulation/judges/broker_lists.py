"""The brokers' lists for operators at the end of a simulation: pending transactions, discarded messages and dead letters."""

from collections.abc import Iterable
from dataclasses import dataclass

from rocketmq_broker.message import MessageExt, topics
from rocketmq_broker.testing.transactions import Inspection, Transaction


@dataclass(frozen=True, slots=True)
class BrokerLists:
    """The lists of all brokers of a simulation."""

    pending: tuple[Transaction, ...] = ()
    dead_letters: tuple[MessageExt, ...] = ()
    discarded: tuple[MessageExt, ...] = ()

    def names_of(self, group: str) -> frozenset[str]:
        """Returns the order ids of the messages that will not be redelivered to the group."""
        topic = topics.dead_letter_topic(group)
        waiting = [*self.discarded, *(message for message in self.dead_letters if message.topic == topic)]
        return frozenset(key for message in waiting for key in message.keys)


def ask(inspections: Iterable[Inspection]) -> BrokerLists:
    """Queries all running brokers and returns their lists."""
    pending: list[Transaction] = []
    dead: list[MessageExt] = []
    discarded: list[MessageExt] = []
    for inspection in inspections:
        pending += inspection.pending()
        for topic in inspection.topics():
            if topic.startswith(topics.DEAD_LETTER_PREFIX):
                dead += inspection.messages(topic)
        discarded += inspection.messages(topics.CHECK_MAX_TIME_TOPIC)
    return BrokerLists(tuple(pending), tuple(dead), tuple(discarded))
