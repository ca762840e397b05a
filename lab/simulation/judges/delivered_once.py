"""Checks that each message of a transaction is in its queue exactly once."""

from collections.abc import Iterable, Iterator
from typing import Final

from lab.simulation.judges.books import BrokerStore
from lab.simulation.judges.violation import Promise, Violation
from rocketmq_broker.message import properties, sysflag, topics
from rocketmq_commitlog.commit_log import LogRecord

_OF_REDELIVERIES: Final = tuple(name.encode() for name in (topics.SCHEDULE_TOPIC, topics.RETRY_PREFIX, topics.DEAD_LETTER_PREFIX))


def doubled_messages(stores: Iterable[BrokerStore]) -> Iterator[Violation]:
    """Yields a violation for each committed message that occurs more than once in the queues of all brokers.

    Each half message has its own unique key, even if the order is sent again. A key that occurs twice was therefore committed
    twice. Messages in retry topics keep their key, and are not counted.
    """
    seen: dict[tuple[bytes, str], LogRecord] = {}
    for store in stores:
        for record in _visible(store):
            unique_key = properties.find(record.properties, properties.UNIQUE_KEY)
            if (
                unique_key is None
                or record.topic.startswith(_OF_REDELIVERIES)
                or record.sys_flag & sysflag.TRANSACTION_MASK != sysflag.TRANSACTION_COMMIT_TYPE
            ):
                continue
            first = seen.setdefault((record.topic, unique_key), record)
            if first is not record:
                places = " and ".join(f"message {it.queue_offset} of queue {it.queue_id}" for it in (first, record))
                names = (properties.find(record.properties, properties.KEYS) or "").split()
                text = f"the message lies in {record.topic.decode()} twice: it is {places}"
                yield Violation(Promise.LIES_THERE_ONCE, text, (unique_key, *names))


def _visible(store: BrokerStore) -> Iterable[LogRecord]:
    """Returns the records visible in queues. If two records have the same position, returns the later one, as recovery does."""
    shown: dict[tuple[bytes, int, int], LogRecord] = {}
    for record in store.messages:
        shown[record.topic, record.queue_id, record.queue_offset] = record
    return shown.values()
