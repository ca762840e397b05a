"""Reads the order database and the credit database of a running shop."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Engine

from demo.books import rows_of
from lab.judged.observations import Observations, ObservedCredits, timed
from order_messages.states import EntryKind, TransactionKind, TransactionState

_POLL_S = 0.3


@dataclass(frozen=True, slots=True)
class ShopState:
    """The two databases, on SQLite. The methods raise DemoError if a database cannot be read."""

    orders: Engine
    credits: Engine

    def of_transactions(self, orders: Iterable[str]) -> dict[str, str]:
        """Returns the state of the transaction of each of these orders that has one."""
        rows = rows_of(
            self.orders,
            "SELECT order_id, state FROM transactions WHERE kind = :kind AND order_id IN (SELECT value FROM json_each(:orders))",
            kind=TransactionKind.ORDER,
            orders=json.dumps(list(orders)),
        )
        return {row.order_id: row.state for row in rows}

    def keys(self) -> dict[str, str]:
        """Returns the Idempotency-Key of each order."""
        return {row.order_id: row.idempotency_key for row in rows_of(self.orders, "SELECT order_id, idempotency_key FROM orders")}

    def in_state(self, state: TransactionState) -> set[str]:
        """Returns the orders whose transaction is in this state."""
        query = "SELECT order_id FROM transactions WHERE kind = :kind AND state = :state AND order_id IS NOT NULL"
        return {row.order_id for row in rows_of(self.orders, query, kind=TransactionKind.ORDER, state=state)}

    def number_of_credits(self) -> dict[str, int]:
        """Returns the number of credits of each order that has one."""
        query = "SELECT order_id, count(*) AS number FROM credits WHERE kind = :kind GROUP BY order_id"
        return {row.order_id: row.number for row in rows_of(self.credits, query, kind=EntryKind.CREDIT)}


def watch_credits(state: ShopState, observations: Observations) -> None:
    """Reads the ledger until the run is settled, and once more then, and observes each change."""
    before = timed(state.number_of_credits)
    is_last = False
    while not is_last:
        is_last = observations.is_settled.wait(_POLL_S)
        after = timed(state.number_of_credits)
        for order_id in before.value.keys() | after.value.keys():
            numbers = before.value.get(order_id, 0), after.value.get(order_id, 0)
            if numbers[0] != numbers[1]:
                observations.found.append(ObservedCredits(order_id, numbers[0], before.at, numbers[1], after.at))
        before = after
