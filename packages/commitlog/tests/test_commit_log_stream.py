"""Tests of the commit log as a stream. The batches contain each record exactly once."""

from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxRows
from pyspark.sql.types import LongType, StringType, StructField, StructType

from rocketmq_commitlog.source import CommitLogSource
from rocketmq_commitlog.stream import BEGINNING, CommitLogStreamReader, read_limit
from tests.unit.pipelines.log_writer import LogWriter

SCHEMA = StructType([StructField("commit_log_offset", LongType()), StructField("kind", StringType())])
Row = tuple[int, str]


def reader_of(store: Path, limit: ReadLimit | None = None, *, range_bytes: int = 700) -> CommitLogStreamReader:
    return CommitLogStreamReader(store, SCHEMA, range_bytes, limit or ReadAllAvailable())


def batch(reader: CommitLogStreamReader, start: dict[str, int], end: dict[str, int]) -> list[Row]:
    found = [rows for part in reader.partitions(start, end) for rows in reader.read(part)]
    return [(row["commit_log_offset"], row["kind"]) for rows in found for row in rows.to_pylist()]


def batches(reader: CommitLogStreamReader) -> list[list[Row]]:
    """Returns the rows of all available batches. Calls the reader's methods as Spark does."""
    start, found = reader.initialOffset(), []
    while (end := reader.latestOffset(start, reader.getDefaultReadLimit())) != start:
        found.append(batch(reader, start, end))
        start = end
    return found


def all_rows(store: Path) -> list[Row]:
    reader = CommitLogSource({"store": str(store)}).reader(SCHEMA)
    found = [rows for part in reader.partitions() for rows in reader.read(part)]
    return [(row["commit_log_offset"], row["kind"]) for rows in found for row in rows.to_pylist()]


@pytest.fixture
def log(tmp_path: Path) -> LogWriter:
    """Returns the writer of a log with several segments and damage in the middle."""
    log = LogWriter(tmp_path, segment_size=2_000)
    for number in range(20):
        damaged = log.deliver(f"order-{number}", half=log.half(f"order-{number}"))
    log.half("the last")
    log.flip(damaged, b"REAL_TOPIC", behind=b"")
    log.damage(damaged, b"\0" * 8)
    return log


@pytest.mark.parametrize(
    "limit", [ReadAllAvailable(), ReadMaxRows(1), ReadMaxRows(7), ReadMaxBytes(1), ReadMaxBytes(900)], ids=str
)
def test_the_batches_are_what_one_reading_finds(log: LogWriter, limit: ReadLimit) -> None:
    found = batches(reader_of(log.store, limit))
    assert [row for rows in found for row in rows] == all_rows(log.store)
    assert [kind for rows in found for _, kind in rows].count("damage") == 1


def test_a_batch_has_no_more_rows_than_the_limit(log: LogWriter) -> None:
    found = batches(reader_of(log.store, ReadMaxRows(7)))
    assert len(found) > 3
    assert max(map(len, found)) <= 7


def test_what_is_added_later_is_the_next_batch(tmp_path: Path) -> None:
    log = LogWriter(tmp_path, segment_size=2_000)
    reader = reader_of(tmp_path)
    nothing = reader.initialOffset()
    first = log.half("a")
    one = reader.latestOffset(nothing, ReadAllAvailable())
    assert batch(reader, nothing, one) == [(first, "half")]
    assert reader.latestOffset(one, ReadAllAvailable()) == one
    assert reader.partitions(one, one) == []
    second = log.half("b")
    two = reader.latestOffset(one, ReadAllAvailable())
    assert batch(reader, one, two) == [(second, "half")]
    assert batch(reader, nothing, two) == [(first, "half"), (second, "half")]


def test_an_empty_log_is_an_empty_stream(tmp_path: Path) -> None:
    LogWriter(tmp_path).save()
    reader = reader_of(tmp_path)
    assert reader.latestOffset(reader.initialOffset(), ReadAllAvailable()) == {"commit_log_offset": BEGINNING}


def test_a_stream_over_what_is_there_now_ends_at_the_record_that_is_last_now(tmp_path: Path) -> None:
    log = LogWriter(tmp_path)
    log.half("a")
    reader = reader_of(tmp_path, ReadMaxRows(1))
    reader.prepareForTriggerAvailableNow()
    log.half("b")
    assert [len(rows) for rows in batches(reader)] == [1]


def test_the_options_say_the_limit() -> None:
    assert read_limit({}) == ReadAllAvailable()
    assert read_limit({"maxRowsPerBatch": "5"}) == ReadMaxRows(5)
    assert read_limit({"maxBytesPerBatch": "7"}) == ReadMaxBytes(7)
