"""Half messages without an op message, read off the two queues: what a broker of Apache's can tell of pending transactions."""

from __future__ import annotations

from typing import Final, NamedTuple

from broker.admin.queue_pages import pages
from broker.admin.requests import BrokerRequests
from broker.message import properties as props
from broker.message import topics
from broker.message.record import Record

_MOST_HALVES: Final = 96
_MOST_OPS: Final = 1000


class UndecidedHalf(NamedTuple):
    """A half message that the latest op messages do not name."""

    transaction_id: str | None
    producer_group: str
    topic: str
    keys: list[str]
    stored_ms: int
    checks: str
    commit_log_offset: int


async def undecided_halves(broker: BrokerRequests) -> list[UndecidedHalf]:
    """The newest half messages that no op message among the newest names, newest first. Raises CannotAsk, Refused.

    A copy that the broker wrote at a check counts, not what it was made from. A half message whose op message is further back
    than the newest 1,000 counts as undecided: then thousands were decided since.
    """
    decided = await _decided(broker)
    found: dict[str, UndecidedHalf] = {}
    seen = 0
    async for page in pages(broker, topics.HALF_TOPIC):
        for record in page:
            seen += 1
            name = record.get_property(props.UNIQUE_KEY) or str(record.commit_log_offset)
            if record.queue_offset not in decided:
                found.setdefault(name, _half(record))
        if seen >= _MOST_HALVES:
            break
    return list(found.values())


async def _decided(broker: BrokerRequests) -> set[int]:
    """The queue offsets of half messages that op messages name."""
    decided: set[int] = set()
    seen = 0
    async for page in pages(broker, topics.OP_HALF_TOPIC):
        for record in page:
            words = record.body.decode(errors="replace").split(",")
            decided.update(int(word) for word in words if word.isascii() and word.isdigit() and len(word) < 20)
        seen += len(page)
        if seen >= _MOST_OPS:
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
