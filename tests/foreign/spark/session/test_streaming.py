"""Tests that Structured Streaming reads a growing commit log, and resumes at the position where it stopped."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rocketmq_commitlog.source import CommitLogSource
from tests.unit.pipelines.log_writer import LogWriter

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
SCHEMA = "commit_log_offset bigint, kind string, keys string"


def test_a_stream_that_is_stopped_in_between_has_the_rows_of_one_reading(spark: SparkSession, tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "store", segment_size=4_000)
    spark.dataSource.register(CommitLogSource)
    store = str(log.store)

    def drain() -> int:
        """Reads all new rows in small batches. Returns the number of batches."""
        stream = spark.readStream.format("rocketmq_commitlog").option("store", store).option("maxRowsPerBatch", "9")
        query = (
            stream.schema(SCHEMA)
            .load()
            .writeStream.format("parquet")
            .option("path", str(tmp_path / "rows"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return len([progress for progress in query.recentProgress if progress.numInputRows])

    for number in range(8):
        damaged = log.deliver(f"order-{number}", half=log.half(f"order-{number}"))
    assert drain() == 2
    log.half("later")
    log.damage(damaged, b"\0" * 8)  # what was read before stays as it was read
    assert drain() == 1
    streamed = spark.read.schema(SCHEMA).parquet(str(tmp_path / "rows")).collect()
    read = spark.read.format("rocketmq_commitlog").option("store", store).schema(SCHEMA).load().collect()
    by_offset = {row.commit_log_offset: row.kind for row in read}
    assert len(streamed) == 17
    assert {row.commit_log_offset: row.kind for row in streamed} == by_offset | {damaged: "committed"}
