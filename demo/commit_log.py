"""Reads transactions with their half, op and committed messages from the broker's commit log."""

import mmap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rocketmq_broker.message import properties, sysflag, topics
from rocketmq_broker.message.record import Record, records_of

ORDERS_TOPIC = b"orders"
_HALF = topics.HALF_TOPIC.encode()
_OP_HALF = topics.OP_HALF_TOPIC.encode()
_DISCARDED = topics.CHECK_MAX_TIME_TOPIC.encode()


@dataclass(slots=True)
class Trace:
    """The records of one transaction in a broker's commit log."""

    half: Record
    op: Record | None = None
    """The op message, which marks the half message as decided. None if there is none."""
    committed: list[Record] = field(default_factory=list)
    """The committed messages, which consumers receive. A correct system has at most one."""
    is_discarded: bool = False
    """True if the broker discarded the message after the last check-back."""
    half_queue_offset: int = field(init=False)
    """The queue offset of the last copy of the half message.

    An op message for an earlier copy marks only that copy as decided.
    """

    def __post_init__(self) -> None:
        """Sets `half_queue_offset` to the queue offset of the first half message."""
        self.half_queue_offset = self.half.queue_offset

    @property
    def transaction_id(self) -> str:
        """The transaction id, which the producer set."""
        return self.half.get_property(properties.UNIQUE_KEY) or ""

    @property
    def pending_ms(self) -> int:
        """The time in milliseconds from the half message to the committed message. 0 if there is no committed message."""
        return self.committed[0].store_timestamp - self.half.store_timestamp if self.committed else 0

    @property
    def checks(self) -> int:
        """The number of check-backs before the committed message was stored."""
        if not self.committed:
            return 0
        return int(self.committed[0].get_property(properties.TRANSACTION_CHECK_TIMES) or "0")


def read_records(commit_log: Path) -> Iterator[Record]:
    """Yields all records of the segments in the folder, in the order in which they were written.

    Yields nothing if the folder is missing, because the broker creates the folder with its first message.
    """
    for segment in sorted(commit_log.iterdir()) if commit_log.exists() else ():
        if segment.stat().st_size:
            with segment.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                yield from records_of(data)


def read_traces(store: Path) -> list[Trace]:
    """Returns the transactions of the topic orders, in the order of their half messages."""
    traces = _Traces()
    for record in read_records(store / "commitlog"):
        traces.add(record)
    return list(traces.by_id.values())


def read_traces_of(stores: Iterable[Path]) -> list[Trace]:
    """Returns the transactions of several brokers, sorted by the time of their half messages."""
    traces = [trace for store in stores for trace in read_traces(store)]
    return sorted(traces, key=lambda trace: trace.half.store_timestamp)


class _Traces:
    """Collects transactions from records. Several copies of a half message belong to the same transaction."""

    def __init__(self) -> None:
        self.by_id: dict[str, Trace] = {}
        self._by_offset: dict[int, Trace] = {}
        self._by_queue_offset: dict[int, Trace] = {}

    def add(self, record: Record) -> None:
        if record.topic == _OP_HALF:
            self._add_op(record)
        elif record.topic == _HALF and record.get_property(properties.REAL_TOPIC) == ORDERS_TOPIC.decode():
            self._add_half(record)
        elif record.topic == _DISCARDED and (found := self.by_id.get(_id_of(record))):
            found.is_discarded = True
        elif _is_committed_order(record) and record.prepared_transaction_offset in self._by_offset:
            self._by_offset[record.prepared_transaction_offset].committed.append(record)

    def _add_half(self, record: Record) -> None:
        trace = self.by_id.setdefault(_id_of(record), Trace(record))
        trace.half_queue_offset = record.queue_offset
        self._by_queue_offset[record.queue_offset] = self._by_offset[record.commit_log_offset] = trace

    def _add_op(self, record: Record) -> None:
        for queue_offset in record.body.decode().split(","):
            trace = self._by_queue_offset.get(int(queue_offset)) if queue_offset else None
            if trace is not None and trace.half_queue_offset == int(queue_offset):
                trace.op = record


def _id_of(record: Record) -> str:
    return record.get_property(properties.UNIQUE_KEY) or str(record.commit_log_offset)


def _is_committed_order(record: Record) -> bool:
    return record.topic == ORDERS_TOPIC and record.sys_flag & sysflag.TRANSACTION_MASK == sysflag.TRANSACTION_COMMIT_TYPE
