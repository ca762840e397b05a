"""Finds pending transactions of Apache's brokers.

Searches the queues and the index for half messages without a decision.

Apache's broker refuses pulls from the half topic until it has checked its pending transactions for the first time,
and may always refuse pulls from the op topic.
"""

from typing import Final, NamedTuple

from rocketmq_broker.admin.broker_requests.queue_pages import pages
from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.admin.output.numbers import is_number
from rocketmq_broker.admin.timeline.evidence import is_committed
from rocketmq_broker.message import properties as props
from rocketmq_broker.message import topics
from rocketmq_broker.message.record import Record

_MAX_HALVES: Final = 32
_MAX_OPS: Final = 1000


class UndecidedHalf(NamedTuple):
    """A half message without a known decision."""

    transaction_id: str | None
    producer_group: str
    topic: str
    keys: list[str]
    stored_ms: int
    checks: str
    commit_log_offset: int


class UndecidedHalves(NamedTuple):
    """The half messages found without a decision."""

    halves: list[UndecidedHalf]
    """The half messages, newest first. If op messages cannot be pulled, half messages that were rolled back are included."""
    is_readable: bool
    """Whether the broker allows pulls of its half messages."""


async def undecided_halves(broker: BrokerRequests) -> UndecidedHalves:
    """Returns the newest half messages without an op message and without a committed message. Raises CannotAsk or Refused.

    A copy that the broker wrote at a check-back replaces its original. Only the newest 1,000 op messages are searched.
    """
    newest = await _newest(broker)
    first, end = await broker.offsets(topics.HALF_TOPIC, 0)
    decided = await _decided(broker)
    found: dict[str, UndecidedHalf] = {}
    copied: set[str] = set()
    for record in newest:
        half = _half(record)
        name = half.transaction_id or str(half.commit_log_offset)
        if name not in copied and record.queue_offset not in decided and not await _is_delivered(broker, half):
            found.setdefault(name, half)
        if record.get_property(props.TRANSACTION_CHECK_TIMES) is not None:
            copied.add(name)
    return UndecidedHalves(list(found.values()), bool(newest) or first == end)


async def _newest(broker: BrokerRequests) -> list[Record]:
    newest: list[Record] = []
    async for page in pages(broker, topics.HALF_TOPIC):
        newest += page
        if len(newest) >= _MAX_HALVES:
            break
    return newest


async def _is_delivered(broker: BrokerRequests, half: UndecidedHalf) -> bool:
    """Returns whether the half message has been committed."""
    if half.transaction_id is None:
        return False
    found = await broker.query(half.topic, half.transaction_id)
    return any(record.prepared_transaction_offset == half.commit_log_offset and is_committed(record) for record in found)


async def _decided(broker: BrokerRequests) -> set[int]:
    """Returns the queue offsets of the half messages that op messages refer to."""
    decided: set[int] = set()
    seen = 0
    async for page in pages(broker, topics.OP_HALF_TOPIC):
        for record in page:
            words = record.body.decode(errors="replace").split(",")
            decided.update(int(word) for word in words if is_number(word))
        seen += len(page)
        if seen >= _MAX_OPS:
            break
    return decided


def _half(record: Record) -> UndecidedHalf:
    return UndecidedHalf(
        transaction_id=record.get_property(props.UNIQUE_KEY),
        producer_group=record.get_property(props.PRODUCER_GROUP) or "",
        topic=record.get_property(props.REAL_TOPIC) or "",
        keys=(record.get_property(props.KEYS) or "").split(),
        stored_ms=record.store_timestamp,
        checks=record.get_property(props.TRANSACTION_CHECK_TIMES) or "0",
        commit_log_offset=record.commit_log_offset,
    )
