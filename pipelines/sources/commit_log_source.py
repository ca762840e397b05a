"""A Spark data source for RocketMQ's commit log: one task for each stretch of a segment file.

    spark.read.format("rocketmq_commitlog").option("store", "data/store").schema("topic string, unique_key string").load()

The schema asked for says which of these columns are made: commit_log_offset, kind, topic, queue_id, queue_offset,
stored_at_ms, born_at_ms, unique_key, keys, real_topic, half_commit_log_offset, decided_queue_offsets (of an op message: the half
queue offsets it settles, separated by commas), check_times, size, body. Every executor must see the store directory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pyarrow
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pipelines.sources.commit_log import RANGE_BYTES, LogRange, scan, split_log
from pipelines.sources.record_columns import COLUMNS, RecordColumns

BATCH_RECORDS = 16_384


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
        makers = [COLUMNS[name] for name in self._schema.fieldNames()]
        found = scan(partition.log_range)
        while batch := list(islice(found, BATCH_RECORDS)):
            rows = RecordColumns.of(batch)
            arrays = [pyarrow.array(make(rows), type=field.type) for make, field in zip(makers, schema, strict=True)]
            yield pyarrow.RecordBatch.from_arrays(arrays, schema=schema)
