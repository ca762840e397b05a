"""A Spark data source for RocketMQ's commit log: one task for each stretch of a segment file.

    spark.read.format("rocketmq_commitlog").option("store", "data/store").schema("topic string, unique_key string").load()

The schema asked for says which of these columns are made: commit_log_offset, kind, topic, queue_id, queue_offset,
stored_at_ms, born_at_ms, unique_key, keys, real_topic, half_commit_log_offset, decided_queue_offsets (of an op message: the half
queue offsets it settles, separated by commas), check_times, size, body. Every executor must see the store directory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Final

import pyarrow
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from broker.message import MessageError, properties, sysflag, topics
from broker.message.record import Record, to_message
from pipelines.sources.commit_log import RANGE_BYTES, Damage, LogRange, scan, split_log

BATCH_RECORDS = 16_384


class RecordKind(StrEnum):
    """What a stretch of the commit log is, as far as transactions are concerned."""

    HALF = "half"
    OP = "op"
    DISCARDED = "discarded"
    COMMITTED = "committed"
    PLAIN = "plain"
    DAMAGE = "damage"


@dataclass
class LogPartition(InputPartition):
    """The stretch that one task reads; None: nothing."""

    log_range: LogRange | None = None


class CommitLogSource(DataSource):
    """The format `rocketmq_commitlog`. Options: `store`, the store's root directory; `rangeBytes` (optional)."""

    @classmethod
    def name(cls) -> str:
        """The name for `spark.read.format`."""
        return "rocketmq_commitlog"

    def reader(self, schema: StructType) -> CommitLogReader:
        """A reader of the columns in the schema."""
        return CommitLogReader(Path(self.options["store"]), schema, int(self.options.get("rangeBytes", RANGE_BYTES)))


class CommitLogReader(DataSourceReader):
    """Plans the stretches on the driver, reads one of them in each task."""

    def __init__(self, store: Path, schema: StructType, range_bytes: int) -> None:
        """`range_bytes` is the length of a stretch."""
        self._store = store
        self._schema = schema
        self._range_bytes = range_bytes

    def partitions(self) -> Sequence[InputPartition]:
        """The stretches there are now."""
        return [LogPartition(log_range) for log_range in split_log(self._store, self._range_bytes)] or [LogPartition()]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """One row for each record or damaged stretch. Raises UnreadableStore."""
        if not isinstance(partition, LogPartition) or partition.log_range is None:
            return
        schema = to_arrow_schema(self._schema, timezone="UTC")
        makers = [_COLUMNS[name] for name in self._schema.fieldNames()]
        found = scan(partition.log_range)
        while batch := list(islice(found, BATCH_RECORDS)):
            arrays = [
                pyarrow.array([make(item) for item in batch], type=field.type) for make, field in zip(makers, schema, strict=True)
            ]
            yield pyarrow.RecordBatch.from_arrays(arrays, schema=schema)


def kind_of(found: Record | Damage) -> RecordKind:
    """What the record is by its topic and its sysFlag."""
    if isinstance(found, Damage):
        return RecordKind.DAMAGE
    if kind := _KIND_BY_TOPIC.get(found.topic):
        return kind
    is_committed = found.sys_flag & sysflag.TRANSACTION_MASK == sysflag.TRANSACTION_COMMIT
    return RecordKind.COMMITTED if is_committed else RecordKind.PLAIN


_KIND_BY_TOPIC: Final = {
    topics.HALF_TOPIC.encode(): RecordKind.HALF,
    topics.OP_HALF_TOPIC.encode(): RecordKind.OP,
    topics.CHECK_MAX_TIME_TOPIC.encode(): RecordKind.DISCARDED,
}


def _of_record(make: Callable[[Record], object]) -> Callable[[Record | Damage], object]:
    return lambda found: make(found) if isinstance(found, Record) else None


def _property(name: str) -> Callable[[Record | Damage], object]:
    return _of_record(lambda record: record.get_property(name))


def _body(record: Record) -> bytes:
    """The body as its sender wrote it; as it lies in the log if it cannot be uncompressed."""
    if not record.sys_flag & sysflag.COMPRESSED:
        return record.body
    try:
        return to_message(record).body
    except MessageError:
        return record.body


def _keys(found: Record | Damage) -> str | None:
    return (" ".join(found.keys) or None) if isinstance(found, Damage) else found.get_property(properties.KEYS)


def _check_times(record: Record) -> int | None:
    text = record.get_property(properties.TRANSACTION_CHECK_TIMES) or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _decided(record: Record) -> str | None:
    return record.body.decode("ascii", errors="replace") if kind_of(record) is RecordKind.OP else None


_COLUMNS: Final[dict[str, Callable[[Record | Damage], object]]] = {
    "commit_log_offset": lambda found: found.commit_log_offset,
    "size": lambda found: found.size,
    "kind": lambda found: kind_of(found).value,
    "topic": _of_record(lambda record: record.topic.decode(errors="replace")),
    "queue_id": _of_record(lambda record: record.queue_id),
    "queue_offset": _of_record(lambda record: record.queue_offset),
    "stored_at_ms": _of_record(lambda record: record.store_timestamp),
    "half_commit_log_offset": _of_record(lambda record: record.prepared_transaction_offset),
    "born_at_ms": _of_record(lambda record: record.born_timestamp),
    "unique_key": _property(properties.UNIQUE_KEY),
    "keys": _keys,
    "real_topic": _property(properties.REAL_TOPIC),
    "decided_queue_offsets": _of_record(_decided),
    "check_times": _of_record(_check_times),
    "body": _of_record(_body),
}
