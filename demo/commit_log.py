"""What the broker's commit log tells of transactions: half message, op message, committed message."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from broker.message import properties, sysflag, topics
from broker.message.record import MESSAGE_MAGIC, SIZE_AND_MAGIC, Record, decode_record

ORDERS_TOPIC = b"orders"
_HALF = topics.HALF_TOPIC.encode()
_OP_HALF = topics.OP_HALF_TOPIC.encode()


@dataclass(slots=True)
class Trace:
    """The records of one transaction, in the order the broker stored them."""

    half: Record
    op: Record | None = None
    """Says that the half message at its queue offset is decided."""
    committed: list[Record] = field(default_factory=list)
    """What consumers see: none or one record, or something is wrong."""

    @property
    def transaction_id(self) -> str:
        """The id that the producer gave the message."""
        return self.half.get_property(properties.UNIQUE_KEY) or ""

    @property
    def pending_ms(self) -> int:
        """How long the half message waited until the committed message was stored; 0 if there is none."""
        return self.committed[0].store_timestamp - self.half.store_timestamp if self.committed else 0

    @property
    def checks(self) -> int:
        """How many check-backs the broker had sent when it stored the committed message."""
        if not self.committed:
            return 0
        return int(self.committed[0].get_property(properties.TRANSACTION_CHECK_TIMES) or "0")


def read_records(commit_log: Path) -> Iterator[Record]:
    """All records of the segments in the folder, in commit log order; ends where nothing was written yet."""
    for segment in sorted(commit_log.iterdir()):
        if segment.stat().st_size:
            with segment.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                yield from _records_of(memoryview(data))


def read_traces(store: Path) -> list[Trace]:
    """The transactions on the orders topic, by the half message's place."""
    by_offset: dict[int, Trace] = {}
    by_queue_offset: dict[int, Trace] = {}
    for record in read_records(store / "commitlog"):
        if record.topic == _HALF and record.get_property(properties.REAL_TOPIC) == ORDERS_TOPIC.decode():
            by_offset[record.commit_log_offset] = by_queue_offset[record.queue_offset] = Trace(record)
        elif record.topic == _OP_HALF:
            for queue_offset in record.body.decode().split(","):
                if queue_offset and int(queue_offset) in by_queue_offset:
                    by_queue_offset[int(queue_offset)].op = record
        elif _is_committed_order(record) and record.prepared_transaction_offset in by_offset:
            by_offset[record.prepared_transaction_offset].committed.append(record)
    return list(by_offset.values())


def _is_committed_order(record: Record) -> bool:
    return record.topic == ORDERS_TOPIC and record.sys_flag & sysflag.TRANSACTION_MASK == sysflag.TRANSACTION_COMMIT


def _records_of(data: memoryview) -> Iterator[Record]:
    position = 0
    while position + SIZE_AND_MAGIC.size <= len(data):
        size, magic = SIZE_AND_MAGIC.unpack_from(data, position)
        if magic != MESSAGE_MAGIC:
            return
        yield decode_record(data, position)
        position += size
