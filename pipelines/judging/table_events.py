"""Events of the two databases: DataFrames in, DataFrames with columns of EVENT_COLUMNS out."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

CENTS_PER_POINT: Final = 100
"""One credit point for each full unit of currency."""


def order_events(orders: DataFrame) -> DataFrame:
    """One for each order row."""
    return orders.select(
        "order_id",
        F.lit(1).alias("order_rows"),
        "customer",
        F.col("total_cents").alias("order_cents"),
        "currency",
        F.col("state").alias("order_state"),
        F.expr(f"total_cents div {CENTS_PER_POINT}").alias("expected_points"),
        F.col("created_at_ms").alias("ordered_at_ms"),
    )


def item_events(items: DataFrame) -> DataFrame:
    """One for each item of an order."""
    price = F.col("price_cents").cast("decimal(19,0)") * F.col("quantity").cast("decimal(18,0)")
    return items.select("order_id", price.cast("decimal(38,0)").alias("item_cents"))


def transaction_events(transactions: DataFrame) -> DataFrame:
    """One for each transaction row that names its order; ROLLED_BACK markers do not, see `markers`."""
    is_committed, is_rolled_back = F.col("state") == "COMMITTED", F.col("state") == "ROLLED_BACK"
    is_cancellation = F.col("kind") == "cancellation"
    return transactions.where(F.col("order_id").isNotNull()).select(
        "order_id",
        (is_committed & ~is_cancellation).cast("int").alias("committed_rows"),
        (is_rolled_back & ~is_cancellation).cast("int").alias("rolled_back_rows"),
        (is_committed & is_cancellation).cast("int").alias("cancelled_rows"),
        F.when(is_committed & ~is_cancellation, F.col("transaction_id")).alias("transaction_id"),
        F.when(~is_cancellation, F.col("created_at_ms")).alias("decided_at_ms"),
        F.when(is_committed & is_cancellation, F.col("created_at_ms")).alias("cancelled_at_ms"),
    )


def markers(transactions: DataFrame) -> DataFrame:
    """The transactions that were rolled back without naming their order. Columns: marked_transaction_id, markers (1)."""
    return transactions.where(F.col("order_id").isNull() & (F.col("state") == "ROLLED_BACK")).select(
        F.col("transaction_id").alias("marked_transaction_id"), F.lit(1).alias("markers")
    )


def credit_events(credits: DataFrame) -> DataFrame:
    """One for each entry of the ledger: a credit, or the reversal that takes it back."""
    is_reversal = F.col("kind") == "reversal"
    amount = F.col("amount_cents").cast("decimal(38,0)")

    def of_credit(column: str) -> Column:
        return F.when(~is_reversal, F.col(column))

    return credits.select(
        "order_id",
        (~is_reversal).cast("int").alias("credit_rows"),
        is_reversal.cast("int").alias("reversal_rows"),
        F.when(~is_reversal, amount).alias("credit_cents"),
        F.when(is_reversal, amount).alias("reversal_cents"),
        of_credit("points").alias("points"),
        F.when(is_reversal, F.col("points")).alias("reversal_points"),
        F.col("customer").alias("credited_customer"),
        F.col("customer").alias("last_credited_customer"),
        of_credit("transaction_id").alias("credit_transaction_id"),
        of_credit("transaction_id").alias("last_credit_transaction_id"),
        F.col("created_at_ms").alias("credited_at_ms"),
    )
