"""A Spark data source that pulls a broker's messages by queue offset, for stores that are not accessible as files.

    spark.read.format("rocketmq_pull").option("brokerAddr", "10.0.0.7:10911").schema("topic string, unique_key string").load()

Its columns are those of `rocketmq_commitlog`. It reads the messages in the queues, so it does not find damage in parts of the log
to which no queue points. Missing queue offsets are returned as a gap. Each executor must be able to connect to the broker. If the
broker requires an account, set ROCKETMQ_* on each executor.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import pyarrow
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pipelines.sources.logs.queue_ranges import RANGE_MESSAGES, QueueRange, pull, queue_ranges
from rocketmq_broker.message.record import Record
from rocketmq_commitlog.commit_log import Damage, LogRecord, keys_in, log_record_of
from rocketmq_commitlog.record_batches import record_batches


@dataclass
class QueuePartition(InputPartition):
    """The range of a queue that one task pulls, or None if the task has nothing to pull."""

    part: QueueRange | None = None


class PulledLogSource(DataSource):
    """The Spark data source `rocketmq_pull`.

    It requires the option `brokerAddr`. The options `topics` (comma-separated) and `rangeMessages` are optional.
    """

    @classmethod
    def name(cls) -> str:
        """Returns the format name for `spark.read.format`."""
        return "rocketmq_pull"

    def reader(self, schema: StructType) -> "PulledLogReader":
        """Returns a reader for the columns of the schema."""
        topics = tuple(filter(None, self.options.get("topics", "").split(",")))
        return PulledLogReader(self.options["brokerAddr"], topics, schema, int(self.options.get("rangeMessages", RANGE_MESSAGES)))


class PulledLogReader(DataSourceReader):
    """Plans the ranges on the driver, and pulls one range in each task."""

    def __init__(self, address: str, topics: Sequence[str], schema: StructType, range_messages: int) -> None:
        """`topics` selects topics; an empty sequence selects all."""
        self._address = address
        self._topics = topics
        self._schema = schema
        self._range_messages = range_messages

    def partitions(self) -> Sequence[InputPartition]:
        """Returns the ranges of all queues. Raises UnreadableStore."""
        ranges = queue_ranges(self._address, self._topics, self._range_messages)
        return [QueuePartition(part) for part in ranges] or [QueuePartition()]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """Yields one row for each message. Raises UnreadableStore."""
        if not isinstance(partition, QueuePartition) or partition.part is None:
            return
        yield from record_batches(found_in(partition.part, pull(self._address, partition.part)), self._schema)


def found_in(part: QueueRange, pages: Iterable[Sequence[Record]]) -> Iterator[LogRecord | Damage]:
    """Yields the records of a range, and a gap for skipped queue offsets, whose messages the broker has lost."""
    expected, ends = part.first, 0
    for record in chain.from_iterable(pages):
        if record.queue_offset > expected:
            size = max(0, record.commit_log_offset - ends)
            yield Damage(ends, size, is_gap=True, whole_again_ms=record.store_timestamp)
        yield log_record_of(record) or Damage(record.commit_log_offset, record.size, keys_in(record.properties))
        expected, ends = record.queue_offset + 1, record.commit_log_offset + record.size
    if expected < part.end:
        yield Damage(ends, 0, is_gap=True)
