"""Describes the facts about an order in sentences, as evidence in a repair plan."""

from collections.abc import Mapping
from typing import Any, Final

from pipelines.judging.classes import CAUSES, MEANINGS, Cause, Finding
from pipelines.reporting.report import utc

_TIMES: Final = (
    ("half_at_ms", "half message stored"),
    ("discarded_at_ms", "half message discarded"),
    ("delivered_at_ms", "message delivered"),
    ("dead_at_ms", "dead letter since"),
    ("received_at_ms", "in the credit service's inbox since"),
)


def evidence_of(row: Mapping[str, Any]) -> list[str]:
    """Returns a sentence for each fact in a row of a reconciliation's outcome."""
    said = [f"{row['finding']}: {MEANINGS[Finding(row['finding'])]}"]
    if row["cause"] is not None:
        said.append(f"cause {row['cause']}: {CAUSES[Cause(row['cause'])]}")
    if row["stage"] == "credited" and row["order_id"] is None:
        return [*said, _balance(row)]
    said.append(_order(row))
    if row["transaction_id"] is not None:
        said.append(f"transaction {row['transaction_id']}")
    said += [f"{label} {utc(int(row[name]))}" for name, label in _TIMES if row[name] is not None]
    if row["last_error"] is not None:
        said.append(f"the credit service failed on it: {row['last_error']}")
    return [*said, _credit(row)]


def _order(row: Mapping[str, Any]) -> str:
    if not row["order_count"]:
        return "order database: no such order"
    amount = "no amount" if row["order_cents"] is None else f"{row['order_cents']} cents {row['currency'] or ''}".rstrip()
    when = "" if row["ordered_at_ms"] is None else f", {utc(int(row['ordered_at_ms']))}"
    return f"order database: {_rows(row['order_count'])}, {amount}, customer {row['customer']}{when}"


def _credit(row: Mapping[str, Any]) -> str:
    if not row["credit_count"]:
        return "ledger: no credit"
    when = "" if row["credited_at_ms"] is None else f", {utc(int(row['credited_at_ms']))}"
    return f"ledger: {_rows(row['credit_count'])}, {row['credit_cents']} cents{when}"


def _balance(row: Mapping[str, Any]) -> str:
    balance = "no balance" if row["balance"] is None else f"a balance of {row['balance']} points"
    return f"customer {row['customer']} has {balance}; the ledger adds up to {row['points']}"


def _rows(count: int) -> str:
    return "1 row" if int(count) == 1 else f"{count} rows"
