"""Orders beside their credits, and what to think of each pair: DataFrames in, DataFrames out."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipelines.judging.cut_off import CutOff
from pipelines.judging.findings import Finding

CENTS_PER_POINT = 100
"""One credit point for each full unit of currency."""


def match_orders(orders: DataFrame, transactions: DataFrame, credits: DataFrame, cut_off: CutOff) -> DataFrame:
    """One row for each order id that occurs among orders or credits, with its finding.

    Columns: finding, order_id, customer, order_cents, credit_cents, credit_count, ordered_at_ms, credited_at_ms.
    """
    pairs = with_outcome(orders, transactions).join(by_order(credits), "order_id", "full_outer")
    return pairs.select(
        judge(cut_off).alias("finding"),
        "order_id",
        F.coalesce("customer", "credited_customer").alias("customer"),
        F.col("total_cents").alias("order_cents"),
        "credit_cents",
        F.coalesce("credit_count", F.lit(0)).alias("credit_count"),
        "ordered_at_ms",
        "credited_at_ms",
    )


def with_outcome(orders: DataFrame, transactions: DataFrame) -> DataFrame:
    """The orders, each with whether all its transactions are rolled back: `is_rolled_back`. `is_there` is true for all.

    One attempt may be rolled back and another COMMITTED for the same order id: then the order stands.
    """
    rolled_back = (
        transactions.where(F.col("order_id").isNotNull())
        .groupBy("order_id")
        .agg(F.bool_and(F.col("state") == "ROLLED_BACK").alias("is_rolled_back"))
        .where("is_rolled_back")
    )
    return orders.join(rolled_back, "order_id", "left").select(
        "order_id",
        "customer",
        "total_cents",
        F.col("created_at_ms").alias("ordered_at_ms"),
        F.coalesce("is_rolled_back", F.lit(False)).alias("is_rolled_back"),
        F.lit(True).alias("is_there"),
    )


def by_order(credits: DataFrame) -> DataFrame:
    """The credits of each order in one row. There should be one only, but a restore may have lost the unique constraint."""
    return credits.groupBy("order_id").agg(
        F.count(F.lit(1)).alias("credit_count"),
        F.sum("amount_cents").alias("credit_cents"),
        F.sum("points").alias("points"),
        F.min("customer").alias("credited_customer"),
        F.min("created_at_ms").alias("credited_at_ms"),
    )


def judge(cut_off: CutOff) -> Column:
    """The finding about one pair of order and credits. What lacks its counterpart is judged only when old enough."""
    has_order = F.coalesce(F.col("is_there") & ~F.col("is_rolled_back"), F.lit(False))
    has_credit = F.col("credit_count").isNotNull()
    is_young = F.coalesce("ordered_at_ms", "credited_at_ms") > cut_off.judged_until_ms
    return (
        F.when(F.col("credit_count") > 1, Finding.DOUBLE_CREDIT)
        .when(~(has_order & has_credit) & is_young, Finding.IN_FLIGHT)
        .when(has_order & ~has_credit, Finding.MISSING_CREDIT)
        .when(~has_order & has_credit, Finding.CREDIT_WITHOUT_ORDER)
        .when(~has_order, Finding.ROLLED_BACK_ORDER)
        .when(~F.col("credit_cents").eqNullSafe(F.col("total_cents")), Finding.AMOUNT_MISMATCH)
        .when(~F.col("points").eqNullSafe(F.expr(f"total_cents div {CENTS_PER_POINT}")), Finding.POINTS_MISMATCH)
        .when(~F.col("credited_customer").eqNullSafe(F.col("customer")), Finding.WRONG_CUSTOMER)
        .otherwise(Finding.MATCHED)
    )
