"""Builds events from rows in memory. `pipelines.judging.table_events` does the same with DataFrames."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

from order_messages.states import (
    MAX_CUSTOMER_LENGTH,
    MAX_ORDER_ID_LENGTH,
    MAX_TOTAL_CENTS,
    EntryKind,
    TransactionKind,
    TransactionState,
)
from pipelines.judging.classes import Cause, Finding
from pipelines.judging.inbox_events import inbox_events
from pipelines.judging.limits import CENTS_PER_POINT, CURRENCY_LETTERS, MAX_QUANTITY
from pipelines.judging.route import Route

Row = Mapping[str, Any]
"""A row of a table by column name."""
_CURRENCY: Final = re.compile(f"[A-Z]{{{CURRENCY_LETTERS}}}")
_MARK_BYTES: Final = 5
"""The number of bytes of an item's hash. It is small enough that the sum of millions of hashes does not overflow."""


@dataclass(frozen=True, slots=True)
class TableRows:
    """All rows of the services' tables that the reconciliation reads."""

    orders: tuple[Row, ...] = ()
    order_items: tuple[Row, ...] = ()
    transactions: tuple[Row, ...] = ()
    credits: tuple[Row, ...] = ()
    balances: tuple[Row, ...] = ()
    inbox: tuple[Row, ...] = ()
    """The rows of `rocketmq_inbox` in the credit database. Read them before the credits."""

    def events(self, route: Route) -> Iterator[dict[str, Any]]:
        """Yields an event for each row, except balances and ROLLED_BACK markers. `route` names the consumer of the inbox."""
        yield from map(_order_event, self.orders)
        yield from map(_item_event, self.order_items)
        yield from (_transaction_event(row) for row in self.transactions if not _is_marker(row))
        yield from map(_credit_event, self.credits)
        yield from inbox_events(self.inbox, route)

    def markers(self) -> list[str]:
        """Returns the ids of transactions with a ROLLED_BACK row without an order."""
        return [row["transaction_id"] for row in self.transactions if _is_marker(row)]

    def balance_findings(self) -> list[dict[str, Any]]:
        """Returns a finding for each customer whose balance differs from the sum of the entries."""
        sums = Counter[str]()
        for row in self.credits:
            sums[row["customer"]] += row["points"]
        balances = {row["customer"]: row["points"] for row in self.balances}
        return [
            {
                "finding": (Finding.BALANCE_MISMATCH if customer in balances else Finding.MISSING_BALANCE).value,
                "cause": Cause.LEDGER_SUM.value,
                "order_id": None,
                "customer": customer,
                "points": sums[customer],
                "balance": balances.get(customer),
            }
            for customer in sorted(sums.keys() | balances.keys())
            if balances.get(customer) != sums[customer]
        ]


def mark_of_item(name: str | None, quantity: int | None) -> int:
    """Returns a hash of an article and its quantity. Lists with equal sums of hashes have the same items, in any sequence."""
    return int.from_bytes(blake2b(f"{quantity} {name}".encode(), digest_size=_MARK_BYTES).digest())


def _order_event(row: Row) -> dict[str, Any]:
    cents = row["total_cents"]
    return {
        "order_id": row["order_id"],
        "order_rows": 1,
        "customer": row["customer"],
        "order_cents": cents,
        "currency": row["currency"],
        "order_state": row["state"],
        "pay_until_ms": row["pay_until_ms"],
        "paid_at_ms": row["paid_at_ms"],
        "ended_at_ms": row["ended_at_ms"],
        "expected_points": None if cents is None else cents // CENTS_PER_POINT if cents >= 0 else -(-cents // CENTS_PER_POINT),
        "ordered_at_ms": row["created_at_ms"],
        "latest_at_ms": _latest(row["created_at_ms"], row["paid_at_ms"], row["ended_at_ms"]),
        "unwritten": _unwritten(
            _has_length(row["order_id"], MAX_ORDER_ID_LENGTH),
            _has_length(row["customer"], MAX_CUSTOMER_LENGTH),
            cents is not None and cents <= MAX_TOTAL_CENTS,
            _CURRENCY.fullmatch(row["currency"] or "") is not None,
        ),
    }


def _item_event(row: Row) -> dict[str, Any]:
    return {
        "order_id": row["order_id"],
        "item_cents": _product(row["price_cents"], row["quantity"]),
        "item_mark": mark_of_item(row["name"], row["quantity"]),
        "unwritten": _unwritten(
            _lies(row["quantity"], 1, MAX_QUANTITY), row["price_cents"] is not None and row["price_cents"] >= 0
        ),
    }


def _is_marker(row: Row) -> bool:
    return row["order_id"] is None and row["kind"] in set(TransactionKind) and row["state"] == TransactionState.ROLLED_BACK


def _transaction_event(row: Row) -> dict[str, Any]:
    order_id, kind, state, at_ms = row["order_id"], row["kind"], row["state"], row["created_at_ms"]
    is_written = state in {known for known in TransactionState if known.is_written}
    is_of_order = is_written and kind == TransactionKind.ORDER
    is_cancelled = kind == TransactionKind.CANCELLATION and state == TransactionState.COMMITTED
    is_placed = is_of_order and state == TransactionState.COMMITTED
    is_rolled_back = is_of_order and state == TransactionState.ROLLED_BACK
    is_of_nothing = order_id is None and state != TransactionState.COMMITTED
    return {
        "order_id": order_id,
        "unnamed": row["transaction_id"] if order_id is None else None,
        "committed_rows": int(is_placed),
        "pending_rows": int(is_of_order and state == TransactionState.PENDING),
        "rolled_back_rows": int(is_rolled_back),
        "cancelled_rows": int(is_cancelled),
        "unknown_rows": int(is_of_nothing or not (is_of_order or is_cancelled)),
        "transaction_id": row["transaction_id"] if is_placed else None,
        "rolled_back_transaction_id": row["transaction_id"] if is_rolled_back else None,
        "cancellation_transaction_id": row["transaction_id"] if is_cancelled else None,
        "decided_at_ms": None if is_cancelled else at_ms,
        "cancelled_at_ms": at_ms if is_cancelled else None,
        "latest_at_ms": at_ms,
    }


def _credit_event(row: Row) -> dict[str, Any]:
    is_credit, is_reversal = row["kind"] == EntryKind.CREDIT, row["kind"] == EntryKind.REVERSAL
    cents = row["amount_cents"]
    common = {
        "order_id": row["order_id"],
        "credit_rows": int(is_credit),
        "reversal_rows": int(is_reversal),
        "unknown_rows": int(not is_credit and not is_reversal),
        "credited_customer": row["customer"],
        "last_credited_customer": row["customer"],
        "credited_at_ms": row["created_at_ms"],
        "latest_at_ms": row["created_at_ms"],
        "unwritten": _unwritten(
            _has_length(row["customer"], MAX_CUSTOMER_LENGTH),
            _lies(cents, 0, MAX_TOTAL_CENTS),
            cents is not None and row["points"] == (-1 if is_reversal else 1) * (cents // CENTS_PER_POINT),
        ),
    }
    if is_credit:
        return common | {
            "credit_cents": row["amount_cents"],
            "points": row["points"],
            "credit_transaction_id": row["transaction_id"],
            "last_credit_transaction_id": row["transaction_id"],
            "credit_message_id": row["message_id"],
        }
    if is_reversal:
        return common | {
            "reversal_cents": row["amount_cents"],
            "reversal_points": row["points"],
            "reversal_transaction_id": row["transaction_id"],
            "reversal_message_id": row["message_id"],
            "reversed_at_ms": row["created_at_ms"],
        }
    return common


def _unwritten(*claims: bool) -> int:
    """Returns 1 for a row with a value that its service never writes."""
    return int(not all(claims))


def _has_length(text: str | None, longest: int) -> bool:
    return text is not None and 1 <= len(text) <= longest


def _lies(number: int | None, least: int, greatest: int) -> bool:
    return number is not None and least <= number <= greatest


def _product(price_cents: int | None, quantity: int | None) -> int | None:
    return None if price_cents is None or quantity is None else price_cents * quantity


def _latest(*times: int | None) -> int | None:
    return max((time for time in times if time is not None), default=None)
