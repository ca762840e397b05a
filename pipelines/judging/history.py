"""The columns of events, and their aggregation into the history of an order.

An event is one row of one source: an order row, an item, a credit, a row of the inbox, or a record of the commit log. It sets the
columns that the source has, and leaves the others NULL. The history is one row that aggregates the events of an order. The SQL
works in both Spark and SQLite, so that tests can judge thousands of histories without a JVM.
"""

from collections.abc import Mapping
from typing import Final

from order_messages.states import OrderState

KEY: Final = {
    "order_id": "string",
    "unnamed": "string",
}
"""The key columns of an event, which identify an order, or a record without an order."""

COUNTS: Final = (
    "order_rows",
    "committed_rows",
    "pending_rows",
    "rolled_back_rows",
    "cancelled_rows",
    "credit_rows",
    "reversal_rows",
    "unknown_rows",
    "unwritten",
    "halves",
    "discards",
    "deliveries",
    "commits",
    "consumed",
    "unconsumed",
    "retries",
    "unconsumed_retries",
    "dead_letters",
    "damaged",
    "gaps",
    "misnamed",
    "unreadable",
    "without_items",
    "cancel_halves",
    "cancel_deliveries",
    "cancel_commits",
    "cancel_misnamed",
    "cancel_unreadable",
    "unconsumed_cancellations",
    "waiting_credits",
    "waiting_reversals",
    "waiting_refusals",
    "parked_credits",
    "parked_reversals",
    "parked_refusals",
    "dismissed_credits",
    "dismissed_reversals",
)
"""The columns that are summed as counts; 0 if no event has a value."""

IN_THE_INBOX: Final = ("waiting_", "parked_", "dismissed_")
"""The name prefixes of the counts of messages in the inbox, by status."""

SUMS: Final = ("item_cents", "item_mark", "credit_cents", "reversal_cents")
"""The columns that are summed; NULL if no event has a value. They are decimals, so that the sum cannot overflow."""

FIRST: Final = {
    "customer": "string",
    "order_cents": "bigint",
    "order_state": "string",
    "pay_until_ms": "bigint",
    "paid_at_ms": "bigint",
    "currency": "string",
    "expected_points": "bigint",
    "ordered_at_ms": "bigint",
    "transaction_id": "string",
    "rolled_back_transaction_id": "string",
    "decided_at_ms": "bigint",
    "points": "bigint",
    "reversal_points": "bigint",
    "credited_customer": "string",
    "credit_transaction_id": "string",
    "credit_message_id": "string",
    "credited_at_ms": "bigint",
    "received_at_ms": "bigint",
    "reversal_transaction_id": "string",
    "reversal_message_id": "string",
    "cancellation_transaction_id": "string",
    "half_at_ms": "bigint",
    "half_transaction_id": "string",
    "delivered_at_ms": "bigint",
    "born_at_ms": "bigint",
    "message_cents": "bigint",
    "message_currency": "string",
    "message_customer": "string",
    "message_transaction_id": "string",
    "message_items": "decimal(38,0)",
    "message_placed_at_ms": "bigint",
    "cancel_cents": "bigint",
    "cancel_currency": "string",
    "cancel_customer": "string",
    "cancel_ended_at_ms": "bigint",
    "cancel_message_id": "string",
    "cancel_born_at_ms": "bigint",
}
"""The columns for which a history has the minimum of the events' values.

For `order_state` it is the last state in the sequence of `OrderState`, because an incremental run may read an order twice.
"""

LAST: Final = {
    "latest_at_ms": "bigint",
    "ended_at_ms": "bigint",
    "reversed_at_ms": "bigint",
    "cancel_delivered_at_ms": "bigint",
    "last_message_cents": "bigint",
    "last_message_currency": "string",
    "last_message_customer": "string",
    "last_message_transaction_id": "string",
    "last_message_items": "decimal(38,0)",
    "last_message_placed_at_ms": "bigint",
    "last_cancel_cents": "bigint",
    "last_cancel_currency": "string",
    "last_cancel_customer": "string",
    "last_cancel_ended_at_ms": "bigint",
    "last_cancel_message_id": "string",
    "last_cancel_born_at_ms": "bigint",
    "last_error": "string",
    "last_credited_customer": "string",
    "last_credit_transaction_id": "string",
    "cancelled_at_ms": "bigint",
    "last_cancel_half_at_ms": "bigint",
    "last_decided_cancel_half_at_ms": "bigint",
    "last_half_at_ms": "bigint",
    "last_decided_half_at_ms": "bigint",
    "discarded_at_ms": "bigint",
    "last_delivered_at_ms": "bigint",
    "last_born_at_ms": "bigint",
    "delayed_at_ms": "bigint",
    "retried_at_ms": "bigint",
    "dead_at_ms": "bigint",
}
"""The columns for which a history has the maximum of the events' values.

`latest_at_ms` is the maximum of all times of events.
"""

EVENT_COLUMNS: Final = KEY | dict.fromkeys(COUNTS, "int") | dict.fromkeys(SUMS, "decimal(38,0)") | FIRST | LAST

NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "customer": ("customer", "credited_customer", "message_customer"),
    "currency": ("currency", "message_currency"),
    "transaction_id": (
        "transaction_id", "half_transaction_id", "message_transaction_id", "credit_transaction_id", "unnamed",
    ),
}  # fmt: skip
"""Maps columns of a finding to columns of its history. The first of these with a value names the finding."""


def aggregates(said: Mapping[str, str] | None = None) -> dict[str, str]:
    """Returns the SQL of each column of a history, which aggregates the events of one key.

    `said` maps the columns that events set to the SQL that reads them; None means all columns, by name. A column that no event
    sets is a constant, 0 for counts and NULL for others, so that Spark does not shuffle it.
    """
    filled = {name: name for name in EVENT_COLUMNS} if said is None else said
    counted = {name: f"COALESCE(SUM({filled[name]}), 0)" if name in filled else "0" for name in COUNTS}
    functions = dict.fromkeys(SUMS, "SUM") | dict.fromkeys(FIRST, "MIN") | dict.fromkeys(LAST, "MAX")
    others = {name: f"{functions[name]}({filled[name]})" if name in filled else "NULL" for name in functions}
    last_state = {"order_state": _last_state(filled["order_state"])} if "order_state" in filled else {}
    return counted | others | last_state


def _last_state(state: str) -> str:
    """Returns the SQL of the last of the events' states. An unknown state counts as the last one, so that it is reported."""
    ranks = " ".join(f"WHEN '{known}' THEN '{rank}'" for rank, known in enumerate(OrderState, 10))
    return f"SUBSTR(MAX(CASE {state} {ranks} ELSE '99' END || {state}), 3)"
