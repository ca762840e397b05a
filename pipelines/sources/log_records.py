"""The commit log as a DataFrame, and a count of its records."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.sources.commit_log_source import CommitLogSource

SCHEMA = (
    "commit_log_offset bigint, kind string, topic string, queue_id int, queue_offset bigint, stored_at_ms bigint, "
    "unique_key string, keys string, real_topic string, half_commit_log_offset bigint, decided_queue_offsets string, size int"
)


def read_records(spark: SparkSession, store: Path) -> DataFrame:
    """Every record of a store's commit log, read when the DataFrame is used. CommitLogSource must be registered."""
    return spark.read.format(CommitLogSource.name()).option("store", str(store.absolute())).schema(SCHEMA).load()


def count_records(records: DataFrame) -> DataFrame:
    """How many records of each kind each topic has, and their bytes. Columns: topic, kind, records, bytes."""
    return (
        records.groupBy("topic", "kind")
        .agg(F.count(F.lit(1)).alias("records"), F.sum("size").alias("bytes"))
        .orderBy("topic", "kind")
    )
