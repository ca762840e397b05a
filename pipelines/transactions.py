"""Determines the outcome of each transaction from the half, op and delivered messages in the commit log.

A transaction is identified by the UNIQ_KEY of its message, which the producer sets. The broker keeps the key when it rewrites a
half message, and in each delivered copy.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rocketmq_commitlog.record_columns import RecordKind


def transactions_of(records: DataFrame, topic: str) -> DataFrame:
    """Returns one row for each transaction of `topic`.

    Columns: unique_key, order_id (the message's first key), stored_at_ms (of the first record), delivered (the number of
    committed messages), is_pending (not delivered, not discarded, and no op message for the latest half message).
    """
    is_sent = (F.col("kind") == RecordKind.COMMITTED) & (F.col("topic") == topic)
    is_prepared = F.col("kind").isin(RecordKind.HALF, RecordKind.DISCARDED) & (F.col("real_topic") == topic)
    steps = _steps(records.where(is_sent | is_prepared).join(decisions_of(records), ["kind", "queue_id", "queue_offset"], "left"))
    # Structs are compared field by field: the maximum is the latest half message.
    latest_half = F.max(F.when(F.col("kind") == RecordKind.HALF, F.struct("queue_offset", "is_decided")))
    return (
        steps.groupBy("unique_key")
        .agg(
            F.min("order_id").alias("order_id"),
            F.min("stored_at_ms").alias("stored_at_ms"),
            F.count(F.when(F.col("kind") == RecordKind.COMMITTED, True)).alias("delivered"),
            F.count(F.when(F.col("kind") == RecordKind.DISCARDED, True)).alias("discarded"),
            latest_half.alias("latest_half"),
        )
        .select(
            "unique_key",
            "order_id",
            "stored_at_ms",
            "delivered",
            (
                (F.col("delivered") == 0) & (F.col("discarded") == 0) & ~F.coalesce(F.col("latest_half.is_decided"), F.lit(True))
            ).alias("is_pending"),
        )
    )


def decisions_of(records: DataFrame) -> DataFrame:
    """Returns the half messages decided by op messages. Columns: kind (half), queue_id, queue_offset, is_decided (true)."""
    return (
        records.where(F.col("kind") == RecordKind.OP)
        .select("queue_id", F.explode(F.split("decided_queue_offsets", ",")).alias("decided"))
        .select("queue_id", F.expr("try_cast(trim(decided) AS bigint)").alias("queue_offset"))
        .where(F.col("queue_offset").isNotNull())
        .distinct()
        .select(F.lit(RecordKind.HALF).alias("kind"), "queue_id", "queue_offset", F.lit(True).alias("is_decided"))
    )


def _steps(records: DataFrame) -> DataFrame:
    return records.select(
        F.coalesce("unique_key", F.concat(F.lit("half@"), "half_commit_log_offset")).alias("unique_key"),
        F.split_part("keys", F.lit(" "), F.lit(1)).alias("order_id"),
        "stored_at_ms",
        "kind",
        "queue_offset",
        F.coalesce("is_decided", F.lit(False)).alias("is_decided"),
    )
