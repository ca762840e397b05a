"""Reads the commit log as a stream. The stream's offset is the commit log offset of the last record that was read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from rocketmq_commitlog.commit_log import Damage, LogRange, LogRecord, scan, split_log
from rocketmq_commitlog.record_batches import record_batches

BEGINNING: Final = -1
_OFFSET: Final = "commit_log_offset"


@dataclass
class StreamPartition(InputPartition):
    """The records of a range whose commit log offset is greater than `after` and at most `until`."""

    log_range: LogRange
    after: int
    until: int


class CommitLogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads new records while the commit log grows. Options limit the rows or the bytes of a batch."""

    def __init__(self, store: Path, schema: StructType, range_bytes: int, limit: ReadLimit, after: int = BEGINNING) -> None:
        """Creates a reader that starts after the record at the commit log offset `after`."""
        self._store = store
        self._schema = schema
        self._range_bytes = range_bytes
        self._limit = limit
        self._after = after
        self._target: int | None = None

    def initialOffset(self) -> dict[str, int]:
        """Returns the offset at which the stream starts."""
        return {_OFFSET: self._after}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Returns the limit of a batch, as set by the options."""
        return self._limit

    def prepareForTriggerAvailableNow(self) -> None:
        """Makes the stream end at the newest record that currently exists. Raises UnreadableStore."""
        self._target = self._last(self._after, ReadAllAvailable(), None)

    def latestOffset(self, start: Mapping[str, Any], limit: ReadLimit) -> dict[str, int]:
        """Returns the offset of the last record of the next batch, or `start` if there are no new records.

        Raises UnreadableStore.
        """
        return {_OFFSET: self._last(int(start[_OFFSET]), limit, self._target)}

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[InputPartition]:
        """Splits the log between two offsets into ranges, one for each partition. Includes damage after the record at `start`."""
        after, until = int(start[_OFFSET]), int(end[_OFFSET])
        if until <= after:
            return []
        ranges = split_log(self._store, self._range_bytes, max(0, after))
        return [StreamPartition(part, after, until) for part in ranges if int(Path(part.segment).name) + part.start <= until]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """Yields one row for each record or damaged stretch. Raises UnreadableStore."""
        assert isinstance(partition, StreamPartition)
        found = scan(partition.log_range)
        new = (one for one in found if partition.after < one.commit_log_offset <= partition.until)
        yield from record_batches(new, self._schema)

    def _last(self, after: int, limit: ReadLimit, target: int | None) -> int:
        """Returns the offset of the last record in the batch that begins after the offset `after`.

        A batch has at least one record, even if that record exceeds the limit.
        """
        last, rows, size = after, 0, 0
        for found in self._behind(after):
            rows, size = rows + 1, size + found.size
            if isinstance(found, Damage):
                continue
            is_beyond = target is not None and found.commit_log_offset > target
            if is_beyond or (last > after and _is_over(limit, rows, size)):
                break
            last = found.commit_log_offset
        return last

    def _behind(self, after: int) -> Iterator[LogRecord | Damage]:
        for log_range in split_log(self._store, self._range_bytes, max(0, after)):
            yield from (found for found in scan(log_range) if found.commit_log_offset > after)


def read_limit(options: Mapping[str, str]) -> ReadLimit:
    """Returns the limit of a batch, as set by the options `maxRowsPerBatch` and `maxBytesPerBatch`.

    By default a batch has no limit.
    """
    if "maxRowsPerBatch" in options:
        return ReadMaxRows(int(options["maxRowsPerBatch"]))
    if "maxBytesPerBatch" in options:
        return ReadMaxBytes(int(options["maxBytesPerBatch"]))
    return ReadAllAvailable()


def _is_over(limit: ReadLimit, rows: int, size: int) -> bool:
    if isinstance(limit, ReadMaxRows):
        return rows > limit.max_rows
    return isinstance(limit, ReadMaxBytes) and size > limit.max_bytes
