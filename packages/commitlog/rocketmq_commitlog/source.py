"""A Spark data source for RocketMQ's commit log. Each Spark task reads one range of a segment file.

    spark.read.format("rocketmq_commitlog").option("store", "data/store").schema("topic string, unique_key string").load()

The schema selects from these columns: commit_log_offset, kind, topic, queue_id, queue_offset, stored_at_ms, born_at_ms,
unique_key, keys, real_topic, half_commit_log_offset, decided_queue_offsets (the half queue offsets that an op message settles,
separated by commas), check_times, size, body. Every executor must have access to the store directory.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from rocketmq_commitlog.commit_log import RANGE_BYTES, LogRange, scan, split_log
from rocketmq_commitlog.record_batches import record_batches
from rocketmq_commitlog.stream import BEGINNING, CommitLogStreamReader, read_limit


@dataclass
class LogPartition(InputPartition):
    """The range of the log that one task reads. None means that the log is empty."""

    log_range: LogRange | None = None


class CommitLogSource(DataSource):
    """The Spark data source with the format name `rocketmq_commitlog`. The option `store` is the root directory of the store.

    The option `rangeBytes` is the minimum size of a range in bytes, and `fromOffset` the first commit log offset. Both are
    optional.
    """

    @classmethod
    def name(cls) -> str:
        """Returns the format name for `spark.read.format`."""
        return "rocketmq_commitlog"

    def reader(self, schema: StructType) -> "CommitLogReader":
        """Returns a reader for the columns in the schema."""
        range_bytes, from_offset = (
            int(self.options.get(name, default)) for name, default in (("rangeBytes", RANGE_BYTES), ("fromOffset", 0))
        )
        return CommitLogReader(Path(self.options["store"]), schema, range_bytes, from_offset)

    def streamReader(self, schema: StructType) -> CommitLogStreamReader:
        """Returns a stream reader for new records.

        The reader's options are `startingOffset`, `maxRowsPerBatch` and `maxBytesPerBatch`.
        """
        return CommitLogStreamReader(
            Path(self.options["store"]),
            schema,
            int(self.options.get("rangeBytes", RANGE_BYTES)),
            read_limit(self.options),
            int(self.options.get("startingOffset", BEGINNING)),
        )


class CommitLogReader(DataSourceReader):
    """Splits the log into ranges on the driver, and reads one range in each task."""

    def __init__(self, store: Path, schema: StructType, range_bytes: int, from_offset: int = 0) -> None:
        """Creates a reader. `range_bytes` is the minimum size of a range in bytes. Records before `from_offset` are not read."""
        self._from_offset = from_offset
        self._store = store
        self._schema = schema
        self._range_bytes = range_bytes

    def partitions(self) -> Sequence[InputPartition]:
        """Returns one partition for each range of the log. Raises UnreadableStore."""
        return [LogPartition(log_range) for log_range in split_log(self._store, self._range_bytes, self._from_offset)] or [
            LogPartition()
        ]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """Yields one row for each record or damaged stretch. Raises UnreadableStore."""
        if not isinstance(partition, LogPartition) or partition.log_range is None:
            return
        found = (one for one in scan(partition.log_range) if one.commit_log_offset >= self._from_offset)
        yield from record_batches(found, self._schema)
