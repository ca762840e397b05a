"""Builds the columns of the commit log table for a batch of records. Only requested columns are built."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from rocketmq_broker.message import MessageError, properties, sysflag, topics
from rocketmq_broker.message.record import Record, to_message
from rocketmq_commitlog.commit_log import Damage, LogRecord


class RecordKind(StrEnum):
    """The kind of a record according to its role in transactions, or the kind of a damaged stretch."""

    HALF = "half"
    OP = "op"
    DISCARDED = "discarded"
    COMMITTED = "committed"
    PLAIN = "plain"
    DAMAGE = "damage"
    GAP = "gap"


_KIND_BY_TOPIC: Final = {
    topics.HALF_TOPIC.encode(): RecordKind.HALF.value,
    topics.OP_HALF_TOPIC.encode(): RecordKind.OP.value,
    topics.CHECK_MAX_TIME_TOPIC.encode(): RecordKind.DISCARDED.value,
}
_OP_TOPIC: Final = topics.OP_HALF_TOPIC.encode()
_UNKNOWN_HOST: Final = bytes(8)
_RECORDS_AT_ONCE: Final = 256
"""Below the number of new objects, 700, at which the garbage collector runs."""


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """A batch of records as columns, with a list for each field of LogRecord.

    A damaged stretch is a row in which most fields are None.
    """

    fields: Sequence[list[Any]]
    damaged: dict[int, Damage]
    """The damaged stretches of the batch, keyed by their position in the batch."""

    @classmethod
    def of(cls, found: Iterable[LogRecord | Damage]) -> "RecordColumns":
        """Returns the columns of these records and damaged stretches."""
        fields: list[list[Any]] = [[] for _ in LogRecord._fields]
        damaged: dict[int, Damage] = {}
        left = iter(found)
        # Python's garbage collector visits records again and again while many of them exist. Values in lists are not visited.
        while few := list(islice(left, _RECORDS_AT_ONCE)):
            begin = len(fields[0])
            damaged |= {begin + place: one for place, one in enumerate(few) if isinstance(one, Damage)}
            rows = [_row(one) for one in few] if damaged else few
            for field, values in zip(fields, zip(*rows, strict=True), strict=True):
                field.extend(values)
        return cls(fields, damaged)

    def field(self, name: str) -> list[Any]:
        """Returns the values of one field for all rows."""
        return self.fields[LogRecord._fields.index(name)]


def _row(found: LogRecord | Damage) -> tuple[Any, ...]:
    if isinstance(found, LogRecord):
        return found
    values = {"size": found.size, "commit_log_offset": found.commit_log_offset, "store_timestamp": found.whole_again_ms}
    return tuple(values.get(name) for name in LogRecord._fields)


Maker = Callable[[RecordColumns], Sequence[Any]]


def _field(name: str) -> Maker:
    return lambda rows: rows.field(name)


def _kinds(rows: RecordColumns) -> Sequence[str]:
    kinds = [
        RecordKind.DAMAGE.value if topic is None else _KIND_BY_TOPIC.get(topic) or _kind_by_flag(sys_flag)
        for topic, sys_flag in zip(rows.field("topic"), rows.field("sys_flag"), strict=True)
    ]
    for place, damage in rows.damaged.items():
        if damage.is_gap:
            kinds[place] = RecordKind.GAP.value
    return kinds


def _kind_by_flag(sys_flag: int) -> str:
    is_committed = sys_flag & sysflag.TRANSACTION_MASK == sysflag.TRANSACTION_COMMIT_TYPE
    return RecordKind.COMMITTED.value if is_committed else RecordKind.PLAIN.value


@lru_cache(maxsize=4096)
def _topic(topic: bytes | None) -> str | None:
    return None if topic is None else topic.decode(errors="replace")


def _topics(rows: RecordColumns) -> Sequence[str | None]:
    return [_topic(topic) for topic in rows.field("topic")]


def _property(name: str) -> Maker:
    return lambda rows: [None if encoded is None else properties.find(encoded, name) for encoded in rows.field("properties")]


def _keys(rows: RecordColumns) -> Sequence[str | None]:
    found = list(_property(properties.KEYS)(rows))
    for place, damage in rows.damaged.items():
        found[place] = " ".join(damage.keys) or None
    return found


def _check_times(rows: RecordColumns) -> Sequence[int | None]:
    texts = _property(properties.TRANSACTION_CHECK_TIMES)(rows)
    return [int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None for text in texts]


def _decided(rows: RecordColumns) -> Sequence[str | None]:
    return [
        body.decode("ascii", errors="replace") if topic == _OP_TOPIC else None
        for topic, body in zip(rows.field("topic"), rows.field("body"), strict=True)
    ]


def _bodies(rows: RecordColumns) -> Sequence[bytes | None]:
    return [
        body if body is None or not sys_flag & sysflag.COMPRESSED else _uncompressed(body, sys_flag)
        for body, sys_flag in zip(rows.field("body"), rows.field("sys_flag"), strict=True)
    ]


def _uncompressed(body: bytes, sys_flag: int) -> bytes:
    """Returns the decompressed body, or the stored body if it cannot be decompressed."""
    record = Record(
        0, 0, 0, 0, 0, 0, sys_flag & ~sysflag.HOSTS_V6, 0, _UNKNOWN_HOST, 0, _UNKNOWN_HOST, 0, 0, body, b"", b"",
    )  # fmt: skip
    try:
        return to_message(record).body
    except MessageError:
        return body


COLUMNS: Final[dict[str, Maker]] = {
    "commit_log_offset": _field("commit_log_offset"),
    "size": _field("size"),
    "kind": _kinds,
    "topic": _topics,
    "queue_id": _field("queue_id"),
    "queue_offset": _field("queue_offset"),
    "stored_at_ms": _field("store_timestamp"),
    "born_at_ms": _field("born_timestamp"),
    "half_commit_log_offset": _field("prepared_transaction_offset"),
    "unique_key": _property(properties.UNIQUE_KEY),
    "keys": _keys,
    "real_topic": _property(properties.REAL_TOPIC),
    "decided_queue_offsets": _decided,
    "check_times": _check_times,
    "body": _bodies,
}
