"""Builds the events of the two databases, with `event_rows`."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame

from order_messages.states import (
    MAX_CUSTOMER_LENGTH,
    MAX_ORDER_ID_LENGTH,
    MAX_TOTAL_CENTS,
    EntryKind,
    TransactionKind,
    TransactionState,
)
from pipelines.judging.events import event_rows
from pipelines.judging.history import KEY
from pipelines.judging.limits import CENTS_PER_POINT, CURRENCY_LETTERS, MAX_QUANTITY
from pipelines.spark.sql_text import if_true, one_of

_WRITTEN_STATES: Final = tuple(state for state in TransactionState if state.is_written)


def order_events(orders: DataFrame) -> DataFrame:
    """Returns an event for each order row."""
    said = {
        "order_rows": "1",
        "customer": "customer",
        "order_cents": "total_cents",
        "currency": "currency",
        "order_state": "state",
        "pay_until_ms": "pay_until_ms",
        "paid_at_ms": "paid_at_ms",
        "ended_at_ms": "ended_at_ms",
        "expected_points": f"total_cents div {CENTS_PER_POINT}",
        "ordered_at_ms": "created_at_ms",
        "latest_at_ms": "greatest(created_at_ms, paid_at_ms, ended_at_ms)",
        "unwritten": _unwritten(
            f"length(order_id) BETWEEN 1 AND {MAX_ORDER_ID_LENGTH}",
            f"length(customer) BETWEEN 1 AND {MAX_CUSTOMER_LENGTH}",
            f"total_cents <= {MAX_TOTAL_CENTS}",
            f"currency RLIKE '^[A-Z]{{{CURRENCY_LETTERS}}}\\\\z'",
        ),
    }
    return event_rows(orders, said)


def ending_events(orders: DataFrame) -> DataFrame:
    """Returns an event for each order that ended, with only the columns that change when an order ends."""
    said = {"order_state": "state", "ended_at_ms": "ended_at_ms", "latest_at_ms": "ended_at_ms"}
    return event_rows(orders, said)


def item_events(items: DataFrame) -> DataFrame:
    """Returns an event for each item of an order. See `mark_of_item` for `item_mark`."""
    price = "CAST(price_cents AS decimal(19,0)) * CAST(quantity AS decimal(18,0))"
    marked = mark_of_item("name", "quantity")
    unwritten = _unwritten(f"quantity BETWEEN 1 AND {MAX_QUANTITY}", "price_cents >= 0")
    return event_rows(items, {"item_cents": f"CAST({price} AS decimal(38,0))", "item_mark": marked, "unwritten": unwritten})


def _unwritten(*claims: str) -> str:
    """Returns the SQL that is 1 for a row with a value that its service never writes. A NULL counts as such a value."""
    return f"CAST(NOT COALESCE({' AND '.join(claims)}, FALSE) AS int)"


def mark_of_item(name: str, quantity: str) -> str:
    """Returns the SQL of a hash of an article and its quantity.

    Lists with equal sums of hashes have the same items, in any sequence.
    """
    return f"CAST(xxhash64({name}, {quantity}) AS decimal(38,0))"


def transaction_events(transactions: DataFrame) -> DataFrame:
    """Returns an event for each transaction row except ROLLED_BACK markers. The key of a row without an order is its own id."""
    is_known = f"COALESCE(kind IN {one_of(TransactionKind)} AND state IN {one_of(_WRITTEN_STATES)}, FALSE)"
    is_of_nothing = f"(order_id IS NULL AND state <> '{TransactionState.COMMITTED}')"
    is_of_order = f"({is_known} AND kind = '{TransactionKind.ORDER}')"
    is_cancelled = f"({is_known} AND kind = '{TransactionKind.CANCELLATION}' AND state = '{TransactionState.COMMITTED}')"
    is_placed = f"({is_of_order} AND state = '{TransactionState.COMMITTED}')"
    is_marker = f"(order_id IS NULL AND {is_known} AND state = '{TransactionState.ROLLED_BACK}')"
    counted = {
        "committed_rows": is_placed,
        "pending_rows": f"{is_of_order} AND state = '{TransactionState.PENDING}'",
        "rolled_back_rows": f"{is_of_order} AND state = '{TransactionState.ROLLED_BACK}'",
        "cancelled_rows": is_cancelled,
        "unknown_rows": f"NOT ({is_of_order} OR {is_cancelled}) OR COALESCE({is_of_nothing}, TRUE)",
    }
    said = {
        **{name: f"CAST({condition} AS int)" for name, condition in counted.items()},
        "transaction_id": if_true(is_placed, "transaction_id"),
        "rolled_back_transaction_id": if_true(counted["rolled_back_rows"], "transaction_id"),
        "cancellation_transaction_id": if_true(is_cancelled, "transaction_id"),
        "decided_at_ms": if_true(f"NOT {is_cancelled}", "created_at_ms"),
        "cancelled_at_ms": if_true(is_cancelled, "created_at_ms"),
        "latest_at_ms": "created_at_ms",
    }
    unnamed = if_true("order_id IS NULL", "transaction_id")
    return event_rows(transactions.where(f"NOT {is_marker}"), said, unnamed=unnamed)


def markers(transactions: DataFrame) -> DataFrame:
    """Returns the markers: ROLLED_BACK rows without an order. Columns: marked_transaction_id, markers (1)."""
    is_marker = f"order_id IS NULL AND state = '{TransactionState.ROLLED_BACK}'"
    return transactions.where(is_marker).selectExpr("transaction_id AS marked_transaction_id", "1 AS markers")


def credit_events(credits: DataFrame) -> DataFrame:
    """Returns an event for each entry of the ledger: a credit, a reversal, or an entry of unknown kind."""
    is_credit, is_reversal = f"(kind <=> '{EntryKind.CREDIT}')", f"(kind <=> '{EntryKind.REVERSAL}')"
    is_known = f"COALESCE(kind IN {one_of(EntryKind)}, FALSE)"
    amount = "CAST(amount_cents AS decimal(38,0))"
    counted = {"credit_rows": is_credit, "reversal_rows": is_reversal, "unknown_rows": f"NOT {is_known}"}
    said = {
        **{name: f"CAST({condition} AS int)" for name, condition in counted.items()},
        "credit_cents": if_true(is_credit, amount),
        "reversal_cents": if_true(is_reversal, amount),
        "points": if_true(is_credit, "points"),
        "reversal_points": if_true(is_reversal, "points"),
        "credited_customer": "customer",
        "last_credited_customer": "customer",
        "credit_transaction_id": if_true(is_credit, "transaction_id"),
        "last_credit_transaction_id": if_true(is_credit, "transaction_id"),
        "credit_message_id": if_true(is_credit, "message_id"),
        "reversal_transaction_id": if_true(is_reversal, "transaction_id"),
        "reversal_message_id": if_true(is_reversal, "message_id"),
        "credited_at_ms": "created_at_ms",
        "reversed_at_ms": if_true(is_reversal, "created_at_ms"),
        "latest_at_ms": "created_at_ms",
        "unwritten": _unwritten(
            f"length(customer) BETWEEN 1 AND {MAX_CUSTOMER_LENGTH}",
            f"amount_cents BETWEEN 0 AND {MAX_TOTAL_CENTS}",
            f"points = IF({is_reversal}, -1, 1) * (amount_cents div {CENTS_PER_POINT})",
        ),
    }
    return event_rows(credits, said)


def inbox_rows(events: DataFrame) -> DataFrame:
    """Returns the events of the inbox, which have `inbox_events.INBOX_COLUMNS`, in the form of the other events."""
    return event_rows(events, {name: name for name in events.columns if name not in KEY}, unnamed="unnamed")
