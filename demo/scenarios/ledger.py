"""Reads the rows of a customer or a transaction in both databases, for the result of a scenario and for timelines."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Engine, Row

from demo.books import CREDIT_DATABASE, ORDER_DATABASE, database, rows_of
from demo.scenarios.questions import Database, Question, ScenarioFinding
from rocketmq_broker.admin.timeline.event import BROKER, Arrow, Event

_CREDITS_OF: Final = "SELECT count(*) FROM credits WHERE customer = :customer"

_COMMITTED_ORDERS: Final = "SELECT count(*) FROM transactions WHERE kind = 'order' AND state = 'COMMITTED'"
_CREDITED_ORDERS: Final = "SELECT count(DISTINCT order_id) FROM credits"

_IN_INBOX: Final = """
SELECT status, received_at_ms, failed_at_ms, last_error FROM rocketmq_inbox
WHERE consumer = 'credit_service' AND message_key LIKE :key ESCAPE '!'
"""
_RECENT: Final = """
SELECT t.transaction_id, t.created_at_ms AS at_ms, t.kind, t.state AS transaction_state, COALESCE(o.state, t.state) AS state,
  o.order_id, o.customer, o.total_cents
FROM transactions t LEFT JOIN orders o ON o.order_id = t.order_id
WHERE LOWER(COALESCE(o.customer, '')) LIKE LOWER(:customer) ESCAPE '!'
  AND (COALESCE(o.order_id, '') LIKE :order ESCAPE '!' OR t.transaction_id LIKE :order ESCAPE '!')
  AND COALESCE(o.state, t.state) LIKE :state ESCAPE '!'
ORDER BY t.created_at_ms DESC, t.transaction_id DESC LIMIT CAST(:most AS INTEGER)
"""


class RecentTransaction(NamedTuple):
    """A transaction of the order service, with its order if it has one."""

    transaction_id: str
    at_ms: int
    kind: str
    transaction_state: str
    state: str
    order_id: str | None
    customer: str | None
    total_cents: int | None


class CreditEntry(NamedTuple):
    """A row of the credit database, which is a credit or a reversal."""

    points: int
    at_ms: int


class LedgerTotals(NamedTuple):
    """The numbers of orders with a COMMITTED transaction, and of orders with a credit."""

    orders: int
    credited: int


class Ledgers:
    """Reads the order database and the credit database. Methods raise DemoError if a database cannot be read."""

    def __init__(self, order_database_url: str, credit_database_url: str) -> None:
        self._orders = database(ORDER_DATABASE, order_database_url)
        self._credits = database(CREDIT_DATABASE, credit_database_url)

    def answer(self, questions: Sequence[Question], customer: str) -> list[ScenarioFinding]:
        """Returns the answers to the questions about a customer."""
        engines = {Database.ORDERS: self._orders, Database.CREDITS: self._credits}
        return [ScenarioFinding(one, _count(engines[one.database], one.sql, customer)) for one in questions]

    def credits_of(self, customer: str) -> int:
        """Returns the number of the customer's entries in the credit database."""
        return _count(self._credits, _CREDITS_OF, customer)

    def order_of(self, customer: str) -> tuple[str, str] | None:
        """Returns the id and the state of the customer's newest order, or None."""
        sql = "SELECT order_id, state FROM orders WHERE customer = :customer ORDER BY created_at_ms DESC LIMIT 1"
        rows = rows_of(self._orders, sql, customer=customer)
        return (str(rows[0].order_id), str(rows[0].state)) if rows else None

    def recent_transactions(self, *, customer: str, order: str, state: str, most: int) -> list[RecentTransaction]:
        """Returns the newest transactions. Empty filters match all.

        `customer` matches a part of the name, `order` matches a prefix of the order id or the transaction id, and `state` matches
        exactly.
        """
        filters = {"customer": f"%{_like(customer)}%", "order": f"{_like(order)}%", "state": _like(state) or "%"}
        return [RecentTransaction(**row._asdict()) for row in rows_of(self._orders, _RECENT, **filters, most=str(most))]

    def entries_of(self, transaction_ids: Sequence[str]) -> dict[str, CreditEntry]:
        """Returns the entries of the credit database by transaction id."""
        ids = {f"id{number}": transaction_id for number, transaction_id in enumerate(transaction_ids)}
        if not ids:
            return {}
        names = ", ".join(f":{name}" for name in ids)
        sql = f"SELECT transaction_id, points, created_at_ms FROM credits WHERE transaction_id IN ({names})"
        return {str(row.transaction_id): CreditEntry(row.points, row.created_at_ms) for row in rows_of(self._credits, sql, **ids)}

    def totals(self) -> LedgerTotals:
        """Returns the number of orders with a COMMITTED transaction, and of orders with a credit."""
        ((orders,),) = rows_of(self._orders, _COMMITTED_ORDERS)
        ((credited,),) = rows_of(self._credits, _CREDITED_ORDERS)
        return LedgerTotals(int(orders), int(credited))

    def transaction_states(self) -> list[str]:
        """Returns the current states of orders, and of transactions without an order."""
        sql = "SELECT DISTINCT COALESCE(o.state, t.state) FROM transactions t LEFT JOIN orders o ON o.order_id = t.order_id"
        return sorted(str(row[0]) for row in rows_of(self._orders, sql))

    def events(self, transaction_id: str) -> list[Event]:
        """Returns both databases' events of a transaction."""
        of_order = rows_of(
            self._orders,
            "SELECT t.state, t.kind, t.created_at_ms, o.order_id, o.customer, o.total_cents, o.pay_until_ms FROM transactions t"
            " LEFT JOIN orders o ON o.order_id = t.order_id WHERE t.transaction_id = :transaction_id",
            transaction_id=transaction_id,
        )
        of_credit = rows_of(
            self._credits,
            "SELECT points, created_at_ms FROM credits WHERE transaction_id = :transaction_id ORDER BY id",
            transaction_id=transaction_id,
        )
        in_inbox = self.inbox_events(transaction_id)
        return [*(event for row in of_order for event in _order_events(row)), *in_inbox, *map(_credit_event, of_credit)]

    def inbox_events(self, transaction_id: str) -> list[Event]:
        """Returns the events of a transaction's message in the credit service's inbox; empty if there is no message."""
        rows = rows_of(self._credits, _IN_INBOX, key=f"{_like(transaction_id)}:%")
        return [event for row in rows for event in _inbox_events(row)]


def _order_events(row: Row[Any]) -> Iterator[Event]:
    if row.order_id is None:
        what = "the order service writes the marker ROLLED_BACK: no order will come under this transaction"
        yield Event(row.created_at_ms, what, ORDER_DATABASE, Arrow("order_service", ORDER_DATABASE, "marker ROLLED_BACK"))
        return
    if row.kind == "cancellation":
        what = f"local transaction: order {row.order_id} for {row.customer} is CANCELLED"
    else:
        what = f"local transaction: order {row.order_id} of {row.total_cents / 100:.2f} for {row.customer}"
    yield Event(row.created_at_ms, what, ORDER_DATABASE, Arrow("order_service", ORDER_DATABASE, "local commit"))
    if row.kind == "order" and row.pay_until_ms is not None:
        what = "the local transaction answers UNKNOWN: the order awaits its payment"
        yield Event(row.created_at_ms, what, ORDER_DATABASE, Arrow("order_service", BROKER, "UNKNOWN"))


def _inbox_events(row: Row[Any]) -> Iterator[Event]:
    what = "the message waits in the inbox of the credit service"
    yield Event(row.received_at_ms, what, CREDIT_DATABASE, Arrow("credit_service", CREDIT_DATABASE, "inbox"))
    if row.failed_at_ms is not None:
        arrow = Arrow("credit_worker", CREDIT_DATABASE, row.status, is_lost=True)
        yield Event(row.failed_at_ms, f"the credit failed: {row.last_error}", CREDIT_DATABASE, arrow)


def _credit_event(row: Row[Any]) -> Event:
    what = f"{row.points} credit points, stored by the Celery worker"
    return Event(row.created_at_ms, what, CREDIT_DATABASE, Arrow("credit_service", CREDIT_DATABASE, f"{row.points} points"))


def _like(word: str) -> str:
    """Escapes the wildcards of SQL's LIKE in a word."""
    return "".join(f"!{letter}" if letter in "!%_" else letter for letter in word)


def _count(engine: Engine, sql: str, customer: str) -> int:
    return int(rows_of(engine, sql, customer=customer)[0][0])
