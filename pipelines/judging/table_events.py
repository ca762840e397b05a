"""Events of the two databases: DataFrames with columns of EVENT_COLUMNS."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from order_messages.states import EntryKind, TransactionKind, TransactionState

CENTS_PER_POINT: Final = 100
"""One credit point for each full unit of currency."""
_WRITTEN_STATES: Final = tuple(state for state in TransactionState if state.is_written)


def order_events(orders: DataFrame) -> DataFrame:
    """Returns an event for each order row."""
    return orders.select(
        "order_id",
        F.lit(1).alias("order_rows"),
        "customer",
        F.col("total_cents").alias("order_cents"),
        "currency",
        F.col("state").alias("order_state"),
        "pay_until_ms",
        "paid_at_ms",
        "ended_at_ms",
        F.expr(f"total_cents div {CENTS_PER_POINT}").alias("expected_points"),
        F.col("created_at_ms").alias("ordered_at_ms"),
        F.greatest("created_at_ms", "paid_at_ms", "ended_at_ms").alias("latest_at_ms"),
    )


def ending_events(orders: DataFrame) -> DataFrame:
    """Returns an event for each order row that was read before the order's end: only the changes by its end."""
    return orders.select(
        "order_id", F.col("state").alias("order_state"), "ended_at_ms", F.col("ended_at_ms").alias("latest_at_ms")
    )


def item_events(items: DataFrame) -> DataFrame:
    """Returns an event for each item of an order. `item_mark`: see `mark_of_item`."""
    price = F.col("price_cents").cast("decimal(19,0)") * F.col("quantity").cast("decimal(18,0)")
    return items.select(
        "order_id",
        price.cast("decimal(38,0)").alias("item_cents"),
        mark_of_item(F.col("name"), F.col("quantity")).alias("item_mark"),
    )


def mark_of_item(name: Column, quantity: Column) -> Column:
    """Returns a number for an article and its quantity. Lists with equal sums of marks have the same lines, in any order."""
    return F.xxhash64(name, quantity).cast("decimal(38,0)")


def transaction_events(transactions: DataFrame) -> DataFrame:
    """Returns an event for each transaction row except the ROLLED_BACK markers. A row without an order has its own id as key."""
    kind, state = F.col("kind"), F.col("state")
    is_known = F.coalesce(kind.isin(*TransactionKind) & state.isin(*_WRITTEN_STATES), F.lit(False))
    is_of_nothing = F.col("order_id").isNull() & (state != TransactionState.COMMITTED)
    is_of_order = is_known & (kind == TransactionKind.ORDER)
    is_cancelled = is_known & (kind == TransactionKind.CANCELLATION) & (state == TransactionState.COMMITTED)
    is_placed = is_of_order & (state == TransactionState.COMMITTED)
    is_marker = F.col("order_id").isNull() & is_known & (state == TransactionState.ROLLED_BACK)
    return transactions.where(~is_marker).select(
        "order_id",
        F.when(F.col("order_id").isNull(), F.col("transaction_id")).alias("unnamed"),
        is_placed.cast("int").alias("committed_rows"),
        (is_of_order & (state == TransactionState.PENDING)).cast("int").alias("pending_rows"),
        (is_of_order & (state == TransactionState.ROLLED_BACK)).cast("int").alias("rolled_back_rows"),
        is_cancelled.cast("int").alias("cancelled_rows"),
        (~(is_of_order | is_cancelled) | F.coalesce(is_of_nothing, F.lit(True))).cast("int").alias("unknown_rows"),
        F.when(is_placed, F.col("transaction_id")).alias("transaction_id"),
        F.when(is_cancelled, F.col("transaction_id")).alias("cancellation_transaction_id"),
        F.when(~is_cancelled, F.col("created_at_ms")).alias("decided_at_ms"),
        F.when(is_cancelled, F.col("created_at_ms")).alias("cancelled_at_ms"),
        F.col("created_at_ms").alias("latest_at_ms"),
    )


def markers(transactions: DataFrame) -> DataFrame:
    """Returns the transactions rolled back without naming their order. Columns: marked_transaction_id, markers (1)."""
    return transactions.where(F.col("order_id").isNull() & (F.col("state") == TransactionState.ROLLED_BACK)).select(
        F.col("transaction_id").alias("marked_transaction_id"), F.lit(1).alias("markers")
    )


def credit_events(credits: DataFrame) -> DataFrame:
    """Returns an event for each entry of the ledger: a credit, a reversal, or an entry of unknown kind."""
    is_credit, is_reversal = F.col("kind").eqNullSafe(EntryKind.CREDIT), F.col("kind").eqNullSafe(EntryKind.REVERSAL)
    is_known = F.coalesce(F.col("kind").isin(*EntryKind), F.lit(False))
    amount = F.col("amount_cents").cast("decimal(38,0)")

    def of_credit(column: str) -> Column:
        return F.when(is_credit, F.col(column))

    def of_reversal(column: str) -> Column:
        return F.when(is_reversal, F.col(column))

    return credits.select(
        "order_id",
        is_credit.cast("int").alias("credit_rows"),
        is_reversal.cast("int").alias("reversal_rows"),
        (~is_known).cast("int").alias("unknown_rows"),
        F.when(is_credit, amount).alias("credit_cents"),
        F.when(is_reversal, amount).alias("reversal_cents"),
        of_credit("points").alias("points"),
        of_reversal("points").alias("reversal_points"),
        F.col("customer").alias("credited_customer"),
        F.col("customer").alias("last_credited_customer"),
        of_credit("transaction_id").alias("credit_transaction_id"),
        of_credit("transaction_id").alias("last_credit_transaction_id"),
        of_credit("message_id").alias("credit_message_id"),
        of_reversal("transaction_id").alias("reversal_transaction_id"),
        of_reversal("message_id").alias("reversal_message_id"),
        F.col("created_at_ms").alias("credited_at_ms"),
        of_reversal("created_at_ms").alias("reversed_at_ms"),
        F.col("created_at_ms").alias("latest_at_ms"),
    )
