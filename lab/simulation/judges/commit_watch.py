"""Checks invariants of the services' databases after each database commit."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from lab.simulation.judges.violation import Promise, Violation
from order_messages import order_cancelled, order_created
from order_messages.states import EntryKind, TransactionState
from rocketmq_broker.message import properties

ORDERS: Final = "orders"
CREDITS: Final = "credits"
STOCK: Final = "stock"
INBOX_OF: Final = {CREDITS: "credit_service", STOCK: "inventory_service"}
"""Maps each database with an inbox to its consumer group."""
_FINAL: Final = (TransactionState.COMMITTED, TransactionState.ROLLED_BACK)


class CommitWatch:
    """Checks new rows after each database commit. It keeps all orders, entries and shipments of the simulation."""

    def __init__(self) -> None:
        """Creates a watch for a new simulation."""
        self.orders: set[str] = set()
        self.transactions: dict[str, str] = {}
        """Maps transaction ids to the states in their rows."""
        self.shipments: dict[str, str] = {}
        self._entries: dict[tuple[str, str], int] = {}
        """Maps the order id and kind of each entry to its row id."""
        self._sums: Counter[str] = Counter()
        self._stored: set[tuple[str, str, str]] = set()
        """The group, topic and order id of each message that an inbox has had."""
        self._waiting: dict[str, dict[str, tuple[str, str, str]]] = {}
        """Maps each group to the messages in its inbox, by their keys."""
        self._looked_at: dict[str, int] = {}
        self._told: set[str] = set()

    def observe_commit(self, database: str, connection: sqlite3.Connection) -> list[Violation]:
        """Checks the database `orders`, `credits` or `stock` after a database commit. Ignores other names."""
        look = {ORDERS: self._look_at_orders, CREDITS: self._look_at_credits, STOCK: self._look_at_stock}.get(database)
        if look is None:
            return []
        return [*look(connection), *self._look_at_inbox(database, connection)]

    def is_handled(self, group: str, topic: str, order_id: str) -> bool:
        """Returns True if the database of a group shows that the order's message was stored in the inbox, or processed.

        Also returns True for a group without a database.
        """
        return (group, topic, order_id) in self._stored or self._is_processed(group, topic, order_id)

    def _is_processed(self, group: str, topic: str, order_id: str) -> bool:
        if group == "credit_service" and topic == order_created.TOPIC:
            return (order_id, EntryKind.CREDIT) in self._entries
        if group == "credit_service" and topic == order_cancelled.TOPIC:
            return (order_id, EntryKind.REVERSAL) in self._entries
        if group == "inventory_service" and topic == order_created.TOPIC:
            return order_id in self.shipments
        if group == "inventory_service" and topic == order_cancelled.TOPIC:
            return self.shipments.get(order_id, "SHIPPED") != "SHIPPED"
        return True

    def _look_at_orders(self, connection: sqlite3.Connection) -> list[Violation]:
        self.orders |= {order_id for (_, order_id) in self._new(connection, ORDERS, "orders", "order_id")}
        found = []
        for transaction_id, state in connection.execute("SELECT transaction_id, state FROM transactions"):
            before = self.transactions.get(transaction_id)
            if before in _FINAL and before != state:
                text = f"the transaction was {before} in the order database, and is {state} now"
                found.append(Violation(Promise.ONE_OUTCOME, text, (transaction_id,)))
            self.transactions[transaction_id] = state
        return found

    def _look_at_credits(self, connection: sqlite3.Connection) -> list[Violation]:
        found: list[Violation] = []
        for row_id, order_id, kind, customer, points in self._new(
            connection, CREDITS, "credits", "order_id", "kind", "customer", "points"
        ):
            self._sums[customer] += points
            if (order_id, kind) in self._entries:
                found.append(Violation(Promise.ORDER_HAS_CREDIT, f"the order has a second {kind}", (order_id,)))
            self._entries[order_id, kind] = row_id
            if order_id not in self.orders:
                text = f"the ledger has a {kind} of {points} points for {customer}, and no order has its id"
                found.append(Violation(Promise.CREDIT_HAS_ORDER, text, (order_id,)))
        balances = dict(connection.execute("SELECT customer, points FROM balances"))
        for customer in sorted(self._sums.keys() | balances.keys()):
            if balances.get(customer) != self._sums[customer] and self._is_news(f"balance of {customer}"):
                text = f"the balance of {customer} is {balances.get(customer)}, and the entries add up to {self._sums[customer]}"
                found.append(Violation(Promise.BALANCE_IS_SUM, text, (customer,)))
        return found

    def _look_at_stock(self, connection: sqlite3.Connection) -> list[Violation]:
        self.shipments = dict(connection.execute("SELECT order_id, state FROM shipments"))
        return []

    def _look_at_inbox(self, database: str, connection: sqlite3.Connection) -> Iterator[Violation]:
        """Yields a violation for each message that has left the inbox without being processed."""
        if (group := INBOX_OF.get(database)) is None:
            return
        before = self._waiting.get(group, {})
        rows = connection.execute("SELECT message_key, topic, properties FROM rocketmq_inbox WHERE consumer = ?", (group,))
        waiting = {key: before.get(key) or (group, topic, _order_id(named)) for key, topic, named in rows}
        self._stored.update(waiting.values())
        self._waiting[group] = waiting
        for key, message in before.items():
            if key not in waiting and not self._is_processed(*message):
                text = f"a message of {message[1]} has left the inbox of {group}, and was not processed"
                yield Violation(Promise.STORED_IS_PROCESSED, text, (message[2],))

    def _new(self, connection: sqlite3.Connection, database: str, table: str, *columns: str) -> list[tuple[Any, ...]]:
        place = f"{database}.{table}"
        query = f"SELECT rowid, {', '.join(columns)} FROM {table} WHERE rowid > ? ORDER BY rowid"
        rows = connection.execute(query, (self._looked_at.get(place, 0),)).fetchall()
        if rows:
            self._looked_at[place] = rows[-1][0]
        return rows

    def _is_news(self, what: str) -> bool:
        """Returns True if this violation was not reported before. A violation that persists is reported only once."""
        is_news = what not in self._told
        self._told.add(what)
        return is_news


def _order_id(named: str) -> str:
    """Returns the order id of a message from the properties in its row."""
    return str(json.loads(named).get(properties.KEYS, ""))
