"""The commit log as a DataFrame, and a count of its records."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.sources.reading import Reading
from rocketmq_commitlog.source import CommitLogSource

COLUMNS: Final = {
    "commit_log_offset": "bigint",
    "size": "bigint",
    "kind": "string",
    "topic": "string",
    "queue_id": "int",
    "queue_offset": "bigint",
    "stored_at_ms": "bigint",
    "born_at_ms": "bigint",
    "unique_key": "string",
    "keys": "string",
    "real_topic": "string",
    "half_commit_log_offset": "bigint",
    "decided_queue_offsets": "string",
    "body": "binary",
}
"""The columns of a record that the reconciliation reads."""


def read_records(reading: Reading, store: Path, from_offset: int = 0) -> DataFrame:
    """Returns each record of a store's commit log, starting at a commit log offset.

    Raises UnreadableStore, or Spark does when the DataFrame is used.
    """
    return reading.frame(CommitLogSource, {"store": str(store.absolute()), "fromOffset": str(from_offset)}, COLUMNS)


def count_records(records: DataFrame) -> DataFrame:
    """Counts the records of each kind in each topic, and their bytes. Columns: topic, kind, records, bytes."""
    return (
        records.groupBy("topic", "kind")
        .agg(F.count(F.lit(1)).alias("records"), F.sum("size").alias("bytes"))
        .orderBy("topic", "kind")
    )
