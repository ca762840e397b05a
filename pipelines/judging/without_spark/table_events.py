"""Builds events from rows in memory, with the SQL of `pipelines.judging.table_events`."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.judging.classes import Cause, Finding
from pipelines.judging.inbox_events import inbox_events
from pipelines.judging.route import Route
from pipelines.judging.table_events import CREDIT_EVENTS, ITEM_EVENTS, MARKER, ORDER_EVENTS, TRANSACTION_EVENTS, EventSql
from pipelines.judging.without_spark.in_sqlite import Row, select
from pipelines.spark.sql_text import if_true


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

    def events(self, route: Route) -> Iterator[Row]:
        """Yields an event for each row, except balances and ROLLED_BACK markers. `route` names the consumer of the inbox."""
        yield from events_of(ORDER_EVENTS, self.orders)
        yield from events_of(ITEM_EVENTS, self.order_items)
        yield from events_of(TRANSACTION_EVENTS, self.transactions)
        yield from events_of(CREDIT_EVENTS, self.credits)
        yield from inbox_events(self.inbox, route)

    def markers(self) -> list[str]:
        """Returns the ids of transactions with a ROLLED_BACK row without an order."""
        query = f"SELECT transaction_id FROM source WHERE {MARKER}"
        return [row["transaction_id"] for row in select(query, source=self.transactions)] if self.transactions else []

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


def events_of(sql: EventSql, rows: Sequence[Row], said: Sequence[Row] = ()) -> list[dict[str, Any]]:
    """Returns the events of the rows. `said` has the fields of the body of each row, if the SQL reads them."""
    if not rows:
        return []
    rare = {name: if_true(sql.rare_where, column) for name, column in (sql.rare or {}).items()}
    columns = {"order_id": "source.order_id", "unnamed": sql.unnamed, **sql.columns, **rare}
    selected = f"SELECT {', '.join(f'{column} AS {name}' for name, column in columns.items())} FROM source"
    if not said:
        return select(f"{selected} WHERE {sql.where}", source=rows)
    return select(f"{selected} JOIN said ON said.rowid = source.rowid WHERE {sql.where}", source=rows, said=said)
