"""The SQL that builds events from the rows of the two databases. Spark and SQLite run the same SQL.

It uses only functions that Spark has. `without_spark.sqlite_events` adds those that SQLite lacks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from order_messages.states import (
    MAX_CUSTOMER_LENGTH,
    MAX_ORDER_ID_LENGTH,
    MAX_TOTAL_CENTS,
    EntryKind,
    TransactionKind,
    TransactionState,
)
from pipelines.spark.sql_text import if_true, one_of

CENTS_PER_POINT: Final = 100
"""The number of cents for one credit point. An order earns one point for each full currency unit."""
MAX_QUANTITY: Final = 10**9
CURRENCY_LETTERS: Final = 3


@dataclass(frozen=True, slots=True)
class EventSql:
    """The SQL that builds an event from each row of a source. The source is named `source` and has a column `order_id`."""

    columns: Mapping[str, str]
    """Maps columns of `history.EVENT_COLUMNS` to their SQL."""
    unnamed: str = "NULL"
    """The SQL of the key column `unnamed`, for rows without an order."""
    where: str = "TRUE"
    """The condition of the rows that have an event."""
    rare: Mapping[str, str] | None = None
    """Further columns, for the rows that meet `rare_where`. They are NULL in other rows."""
    rare_where: str = "FALSE"


def _unwritten(*claims: str) -> str:
    """Returns the SQL that is 1 for a row with a value that its service never writes. A NULL counts as such a value."""
    return f"CAST(NOT COALESCE({' AND '.join(claims)}, FALSE) AS int)"


def mark_of_item(name: str, quantity: str) -> str:
    """Returns the SQL of a hash of an article and its quantity.

    Lists with equal sums of hashes have the same items, in any sequence.
    """
    return f"CAST(xxhash64({name}, {quantity}) AS decimal(38,0))"


def _counted(conditions: Mapping[str, str]) -> dict[str, str]:
    return {name: f"CAST({condition} AS int)" for name, condition in conditions.items()}


_PRICE: Final = "CAST(price_cents AS decimal(19,0)) * CAST(quantity AS decimal(18,0))"

ORDER_EVENTS: Final = EventSql(
    {
        "order_rows": "1",
        "customer": "customer",
        "order_cents": "total_cents",
        "currency": "currency",
        "order_state": "state",
        "pay_until_ms": "pay_until_ms",
        "paid_at_ms": "paid_at_ms",
        "ended_at_ms": "ended_at_ms",
        "expected_points": f"div(total_cents, {CENTS_PER_POINT})",
        "ordered_at_ms": "created_at_ms",
        "latest_at_ms": "greatest(created_at_ms, paid_at_ms, ended_at_ms)",
        "unwritten": _unwritten(
            f"length(order_id) BETWEEN 1 AND {MAX_ORDER_ID_LENGTH}",
            f"length(customer) BETWEEN 1 AND {MAX_CUSTOMER_LENGTH}",
            f"total_cents <= {MAX_TOTAL_CENTS}",
            f"length(currency) = {CURRENCY_LETTERS}",
            "currency REGEXP '^[A-Z]+$'",
        ),
    }
)
"""An event for each order row."""

ENDING_EVENTS: Final = EventSql({"order_state": "state", "ended_at_ms": "ended_at_ms", "latest_at_ms": "ended_at_ms"})
"""An event for each order that ended, with only the columns that change when an order ends."""

ITEM_EVENTS: Final = EventSql(
    {
        "item_cents": f"CAST({_PRICE} AS decimal(38,0))",
        "item_mark": mark_of_item("name", "quantity"),
        "unwritten": _unwritten(f"quantity BETWEEN 1 AND {MAX_QUANTITY}", "price_cents >= 0"),
    }
)
"""An event for each item of an order."""

_WRITTEN_STATES: Final = tuple(state for state in TransactionState if state.is_written)
_IS_KNOWN: Final = f"COALESCE(kind IN {one_of(TransactionKind)} AND state IN {one_of(_WRITTEN_STATES)}, FALSE)"
_IS_OF_NOTHING: Final = f"(order_id IS NULL AND state <> '{TransactionState.COMMITTED}')"
_IS_OF_ORDER: Final = f"({_IS_KNOWN} AND kind = '{TransactionKind.ORDER}')"
_IS_CANCELLED: Final = f"({_IS_KNOWN} AND kind = '{TransactionKind.CANCELLATION}' AND state = '{TransactionState.COMMITTED}')"
_IS_PLACED: Final = f"({_IS_OF_ORDER} AND state = '{TransactionState.COMMITTED}')"
_IS_ROLLED_BACK: Final = f"({_IS_OF_ORDER} AND state = '{TransactionState.ROLLED_BACK}')"
MARKER: Final = f"(order_id IS NULL AND state = '{TransactionState.ROLLED_BACK}')"
"""The condition of a marker: a ROLLED_BACK row without an order."""

TRANSACTION_EVENTS: Final = EventSql(
    {
        **_counted(
            {
                "committed_rows": _IS_PLACED,
                "pending_rows": f"{_IS_OF_ORDER} AND state = '{TransactionState.PENDING}'",
                "rolled_back_rows": _IS_ROLLED_BACK,
                "cancelled_rows": _IS_CANCELLED,
                "unknown_rows": f"NOT ({_IS_OF_ORDER} OR {_IS_CANCELLED}) OR COALESCE({_IS_OF_NOTHING}, TRUE)",
            }
        ),
        "transaction_id": if_true(_IS_PLACED, "transaction_id"),
        "rolled_back_transaction_id": if_true(_IS_ROLLED_BACK, "transaction_id"),
        "cancellation_transaction_id": if_true(_IS_CANCELLED, "transaction_id"),
        "decided_at_ms": if_true(f"NOT {_IS_CANCELLED}", "created_at_ms"),
        "cancelled_at_ms": if_true(_IS_CANCELLED, "created_at_ms"),
        "latest_at_ms": "created_at_ms",
    },
    unnamed=if_true("order_id IS NULL", "transaction_id"),
    where=f"NOT ({_IS_KNOWN} AND COALESCE({MARKER}, FALSE))",
)
"""An event for each transaction row except markers of known kinds. The key of a row without an order is its own id."""

_IS_CREDIT: Final = f"COALESCE(kind = '{EntryKind.CREDIT}', FALSE)"
_IS_REVERSAL: Final = f"COALESCE(kind = '{EntryKind.REVERSAL}', FALSE)"
_AMOUNT: Final = "CAST(amount_cents AS decimal(38,0))"

CREDIT_EVENTS: Final = EventSql(
    {
        **_counted(
            {
                "credit_rows": _IS_CREDIT,
                "reversal_rows": _IS_REVERSAL,
                "unknown_rows": f"NOT COALESCE(kind IN {one_of(EntryKind)}, FALSE)",
            }
        ),
        "credit_cents": if_true(_IS_CREDIT, _AMOUNT),
        "reversal_cents": if_true(_IS_REVERSAL, _AMOUNT),
        "points": if_true(_IS_CREDIT, "points"),
        "reversal_points": if_true(_IS_REVERSAL, "points"),
        "credited_customer": "customer",
        "last_credited_customer": "customer",
        "credit_transaction_id": if_true(_IS_CREDIT, "transaction_id"),
        "last_credit_transaction_id": if_true(_IS_CREDIT, "transaction_id"),
        "credit_message_id": if_true(_IS_CREDIT, "message_id"),
        "reversal_transaction_id": if_true(_IS_REVERSAL, "transaction_id"),
        "reversal_message_id": if_true(_IS_REVERSAL, "message_id"),
        "credited_at_ms": "created_at_ms",
        "reversed_at_ms": if_true(_IS_REVERSAL, "created_at_ms"),
        "latest_at_ms": "created_at_ms",
        "unwritten": _unwritten(
            f"length(customer) BETWEEN 1 AND {MAX_CUSTOMER_LENGTH}",
            f"amount_cents BETWEEN 0 AND {MAX_TOTAL_CENTS}",
            f"points = CASE WHEN {_IS_REVERSAL} THEN -1 ELSE 1 END * div(amount_cents, {CENTS_PER_POINT})",
        ),
    }
)
"""An event for each entry of the ledger: a credit, a reversal, or an entry of unknown kind."""
