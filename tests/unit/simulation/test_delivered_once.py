"""The judge of transactional messages detects messages that are in their queues twice."""

from collections import defaultdict

import pytest

from lab.simulation.judges.books import BrokerStore
from lab.simulation.judges.delivered_once import doubled_messages
from lab.simulation.judges.violation import Promise
from rocketmq_broker.message import properties, sysflag
from rocketmq_commitlog.commit_log import Damage, LogRecord


def record(
    unique_key: str,
    queue_offset: int,
    *,
    sys_flag: int = sysflag.TRANSACTION_COMMIT_TYPE,
    queue_id: int = 0,
    topic: str = "orders",
) -> LogRecord:
    encoded = properties.encode({properties.UNIQUE_KEY: unique_key, properties.KEYS: "order-1"})
    return LogRecord(100, 0, queue_id, queue_offset, sys_flag, 0, 0, 0, b"", topic.encode(), encoded)


def doubled(*stores: tuple[LogRecord | Damage, ...]) -> list[tuple[str, tuple[str, ...]]]:
    found = doubled_messages(BrokerStore(records, defaultdict(dict)) for records in stores)
    return [(violation.promise, violation.keys) for violation in found]


def test_each_message_once_breaks_nothing() -> None:
    assert doubled((record("A", 0), record("B", 1)), (record("C", 0),)) == []


def test_a_message_that_was_committed_twice_breaks_the_promise() -> None:
    told = [(Promise.LIES_THERE_ONCE, ("A", "order-1"))]
    assert doubled((record("A", 0), record("A", 1))) == told
    assert doubled((record("A", 0), record("A", 0, queue_id=1))) == told
    assert doubled((record("A", 0),), (record("A", 0),)) == told


def test_a_record_that_recovery_passed_over_does_not_count() -> None:
    assert doubled((record("A", 0), Damage(100, 50), record("A", 0))) == []
    assert doubled((record("A", 0), Damage(100, 50), record("B", 0), record("A", 1))) == []


@pytest.mark.parametrize("topic", ["SCHEDULE_TOPIC_XXXX", "%RETRY%credit_service", "%DLQ%credit_service"])
def test_a_message_that_is_redelivered_twice_does_not_count(topic: str) -> None:
    assert doubled((record("A", 0), record("A", 0, topic=topic), record("A", 1, topic=topic))) == []


def test_a_plain_message_that_was_sent_twice_does_not_count() -> None:
    assert doubled((record("A", 0, sys_flag=0), record("A", 1, sys_flag=0))) == []
