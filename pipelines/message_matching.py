"""Orders beside the messages that announce them: DataFrames in, DataFrames out."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.judging.cut_off import CutOff
from pipelines.judging.findings import Finding


def match_messages(orders: DataFrame, transactions: DataFrame, cut_off: CutOff, log_begins_ms: int) -> DataFrame:
    """What is wrong between orders (of `matching.with_outcome`) and transactions (of `transactions.transactions_of`).

    Orders made before `log_begins_ms` are not asked for their message: the broker may have deleted it, as it does with old
    segments. Columns as those of `matching.match_orders`.
    """
    committed = orders.where(~F.col("is_rolled_back"))
    delivered = transactions.where(F.col("delivered") > 0)
    old_enough = F.col("stored_at_ms") <= cut_off.judged_until_ms
    found = [
        _of_orders(
            committed.where(F.col("ordered_at_ms").between(log_begins_ms, cut_off.judged_until_ms)).join(
                transactions.where((F.col("delivered") > 0) | F.col("is_pending")), "order_id", "left_anti"
            ),
            Finding.ORDER_WITHOUT_MESSAGE,
        ),
        _of_messages(
            delivered.where(old_enough).join(committed, "order_id", "left_anti"),
            Finding.MESSAGE_WITHOUT_ORDER,
        ),
        _of_messages(transactions.where(F.col("is_pending") & old_enough), Finding.HALF_MESSAGE_PENDING),
        _of_messages(transactions.where(F.col("delivered") > 1), Finding.DOUBLED_DELIVERY),
    ]
    return reduce(DataFrame.unionByName, found)


def _of_orders(orders: DataFrame, finding: Finding) -> DataFrame:
    return orders.select(
        F.lit(finding).alias("finding"),
        "order_id",
        "customer",
        F.col("total_cents").alias("order_cents"),
        F.lit(None).cast("bigint").alias("credit_cents"),
        F.lit(None).cast("bigint").alias("credit_count"),
        "ordered_at_ms",
        F.lit(None).cast("bigint").alias("credited_at_ms"),
    )


def _of_messages(transactions: DataFrame, finding: Finding) -> DataFrame:
    return transactions.select(
        F.lit(finding).alias("finding"),
        "order_id",
        F.lit(None).cast("string").alias("customer"),
        F.lit(None).cast("bigint").alias("order_cents"),
        F.lit(None).cast("bigint").alias("credit_cents"),
        F.lit(None).cast("bigint").alias("credit_count"),
        F.col("stored_at_ms").alias("ordered_at_ms"),
        F.lit(None).cast("bigint").alias("credited_at_ms"),
    )
