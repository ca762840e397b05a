"""Orders and their transactions in the database, where local transaction and check-back exclude each other.

Both write the transaction's row, whose key is the transaction id. The local transaction writes COMMITTED together with the order,
in one database transaction. Check-back writes ROLLED_BACK if it finds no row. The second writer fails on the key. So after
check-back has answered ROLLBACK, a slow local transaction cannot add its order. That holds within one database only: a database
that may be an old copy of the sender's writes no ROLLED_BACK (`adapters.order_history`).

An order to be paid later is stored with PENDING. Payment, cancellation and deadline each lock the order's row and change it by
the table in `domain.life_cycle`, together with the transaction's row: the second finds the change of the first.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from sqlalchemy import ColumnElement, Connection, Engine, Table, update
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, col, select
from sqlmodel.sql.expression import SelectOfScalar

from order_messages.states import OrderState, TransactionKind, TransactionState
from order_service.adapters.order_history import OrderHistory
from order_service.adapters.order_rows import (
    Values,
    item_values,
    order_of,
    order_values,
    orders_of,
    transaction_of,
    transaction_values,
)
from order_service.adapters.tables import OrderDatabase, OrderRow, TransactionRow
from order_service.domain.history import Witness
from order_service.domain.life_cycle import OrderEvent, next_state
from order_service.domain.order import Cancellation, Order
from order_service.domain.timeline import OrderTransaction
from order_service.service_layer.attempt import Outcome, TransactionFailed
from order_service.service_layer.order_store import HistoryDoubted
from rocketmq_broker.databases import DecidedBefore
from rocketmq_broker.databases.sqlalchemy import settled_state, write_outcome
from rocketmq_broker.world import World
from service_runtime.database.constraints import is_duplicate
from service_runtime.database.database_errors import DatabaseRefusal
from service_runtime.database.rows_together import RowsTogether
from service_runtime.database.sessions import Sessions

_ORDERS: Final = OrderDatabase.metadata.tables["orders"]
_ITEMS: Final = OrderDatabase.metadata.tables["order_items"]
_TRANSACTIONS: Final = OrderDatabase.metadata.tables["transactions"]

logger = logging.getLogger(__name__)


class SqlOrderStore:
    """The order database; safe to use from several threads. Each method raises DatabaseUnavailable."""

    def __init__(self, engine: Engine, world: World) -> None:
        """`engine` is from `service_runtime.database.opening.open_database`."""
        self._now_ms = world.wall_ms
        self._sessions = Sessions(engine, now_s=world.steady_s, acquire=world.acquire)
        self._history = OrderHistory(self._sessions, world)

    def witness(self) -> Witness:
        """Returns the database's witness for the next half message. Raises DatabaseUnavailable or OutcomeUnknown.

        Raises HistoryDoubted while the database may be another one or an old copy: an order there may be lost with it, or be one
        that a customer has placed already.
        """
        witness = self._history.witness()
        if (reason := self._history.doubt()) is not None:
            raise HistoryDoubted(reason)
        return witness

    def history_doubt(self) -> str | None:
        """Returns why this database may be another than the senders', or an old copy; None without doubt. Raises nothing."""
        return self._history.doubt()

    def compare_history(self, newest: Callable[[], list[Witness]]) -> None:
        """Doubts this database if it is an old copy by one of the newest witnesses at the broker. Raises nothing."""
        self._history.compare(newest)

    def adopt_history(self, reason: str) -> int:
        """Makes this database decide all half messages until now, whatever their witness. Returns the time in milliseconds."""
        return self._history.adopt(reason)

    def store_order(self, order: Order, transaction_id: str) -> None:
        """Writes order, items and transaction row by one local commit; durable on return.

        Raises TransactionFailed (DECIDED_BEFORE, KEY_TAKEN) or DatabaseUnavailable when nothing was written, and OutcomeUnknown.
        """
        state = TransactionState.COMMITTED if order.state.is_told else TransactionState.PENDING
        transaction = self._transaction(transaction_id, state, order.order_id)
        together = RowsTogether(_TRANSACTIONS, transaction, rows_of(order), unless="transaction_id")
        with _unless_key_taken():
            is_first = self._sessions.write_together(together)
        if not is_first:
            raise TransactionFailed(Outcome.DECIDED_BEFORE)
        self._history.note_local_commit(transaction_id)

    def store_cancellation(self, cancellation: Cancellation, transaction_id: str) -> None:
        """Writes the order's state CANCELLED and the transaction's row by one local commit; durable on return.

        Raises TransactionFailed (DECIDED_BEFORE, NOT_CANCELLABLE) or DatabaseUnavailable when nothing was written, and
        OutcomeUnknown.
        """
        kind = TransactionKind.CANCELLATION
        committed = self._transaction(transaction_id, TransactionState.COMMITTED, cancellation.order_id, kind)
        with self._sessions.writing() as session:
            _insert_transaction(session.connection(), committed)
            row = _locked(session, cancellation.order_id)
            if row is None or not order_of(row).state.is_told:
                reason = f"order {cancellation.order_id} is {row.state if row else 'unknown'}"
                raise TransactionFailed(Outcome.NOT_CANCELLABLE, reason)
            _change(session, row, cancellation.event, cancellation.cancelled_at_ms, cancellation.reason)
        self._history.note_local_commit(transaction_id)

    def pay(self, order_id: str, now_ms: int) -> Order | None:
        """Returns the order afterwards: PAID if possible, EXPIRED if overdue, else unchanged; None if it is unknown.

        Raises HistoryDoubted instead of expiring an order whose payment may only be missing in this copy.
        """
        with self._sessions.writing() as session:
            row = _locked(session, order_id)
            if row is None:
                return None
            if order_of(row).is_overdue(now_ms):
                self._require_no_doubt(session, None)
            if not _expire_if_overdue(session, row, now_ms):
                _change(session, row, OrderEvent.PAY, now_ms)
            return orders_of(session, [row])[0]

    def cancel_unpaid(self, order_id: str, reason: str, now_ms: int) -> Order | None:
        """Returns the order afterwards: CANCELLED if it awaited payment, EXPIRED if overdue, else unchanged; None if unknown.

        Raises HistoryDoubted instead of ending an order whose payment may only be missing in this copy.
        """
        with self._sessions.writing() as session:
            row = _locked(session, order_id)
            if row is None:
                return None
            is_waiting = OrderState(row.state) is OrderState.AWAITING_PAYMENT
            if is_waiting:
                self._require_no_doubt(session, None)
            if is_waiting and not _expire_if_overdue(session, row, now_ms):
                _change(session, row, OrderEvent.CANCEL, now_ms, reason)
            return orders_of(session, [row])[0]

    def expire_if_overdue(self, transaction_id: str, now_ms: int, witness: Witness | None = None) -> TransactionState:
        """Returns the state of a PENDING transaction: ROLLED_BACK, final, if its order is still unpaid after the deadline.

        An order of another process does not expire at the first check-back that this one hears: see `was_asked_before`.
        Raises DatabaseUnavailable, OutcomeUnknown or HistoryDoubted; then the broker must ask again.
        """
        with self._sessions.writing() as session:
            self._require_no_doubt(session, witness)
            order_id = session.exec(
                select(TransactionRow.order_id).where(col(TransactionRow.transaction_id) == transaction_id)
            ).one()
            row = _locked(session, order_id or "")
            if row is not None and self._history.was_asked_before(transaction_id, witness):
                _expire_if_overdue(session, row, now_ms)
            return TransactionState(session.exec(_state_of(transaction_id)).one())

    def settle(
        self,
        transaction_id: str,
        order_id: str | None = None,
        kind: TransactionKind = TransactionKind.ORDER,
        witness: Witness | None = None,
    ) -> TransactionState:
        """Returns COMMITTED or ROLLED_BACK, both final, or PENDING. Writes ROLLED_BACK first if there is no row.

        It also returns ROLLED_BACK if the transaction's row belongs to another order than `order_id`: then two messages have one
        transaction id, and the row keeps the second order out for ever. Raises DatabaseUnavailable, OutcomeUnknown or, without a
        row in a database that may be an old copy, HistoryDoubted; then the broker must ask again.
        """
        marker = self._transaction(transaction_id, TransactionState.ROLLED_BACK, None, kind)
        with self._sessions.writing() as session:
            row = session.exec(_row_of(transaction_id)).first()
            if row is None:
                self._require_no_doubt(session, witness)
                settled_state(session.connection(), _TRANSACTIONS, marker)
                row = session.exec(_row_of(transaction_id)).one()
            state, stored_order = TransactionState(row.state), row.order_id
        if state is not TransactionState.ROLLED_BACK and order_id not in (None, stored_order):
            logger.error(
                "transaction %s belongs to order %s: order %s, whose message has the same transaction id, is rolled back",
                transaction_id, stored_order, order_id,
            )  # fmt: skip
            return TransactionState.ROLLED_BACK
        return state

    def find_transaction(self, transaction_id: str) -> TransactionState | None:
        """Returns the state of the transaction, or None while it is open. Changes nothing."""
        with self._sessions.reading() as session:
            state = session.exec(_state_of(transaction_id)).first()
        return None if state is None else TransactionState(state)

    def find_transaction_id(self, order_id: str) -> str | None:
        """Returns the id of the transaction that wrote the order, or None."""
        query = select(TransactionRow.transaction_id).where(
            col(TransactionRow.order_id) == order_id, col(TransactionRow.kind) == TransactionKind.ORDER.value
        )
        with self._sessions.reading() as session:
            return session.exec(query).first()

    def find_transactions(self, order_id: str) -> list[OrderTransaction]:
        """Returns the transactions that name the order, the oldest first."""
        query = select(TransactionRow).where(col(TransactionRow.order_id) == order_id).order_by(col(TransactionRow.created_at_ms))
        with self._sessions.reading() as session:
            return [transaction_of(row) for row in session.exec(query)]

    def find_order(self, order_id: str) -> Order | None:
        """Returns the order with this id, or None."""
        return self._find_one(col(OrderRow.order_id) == order_id)

    def find_order_by_key(self, customer: str, idempotency_key: str) -> Order | None:
        """Returns the customer's order with this idempotency key, or None."""
        return self._find_one(col(OrderRow.customer) == customer, col(OrderRow.idempotency_key) == idempotency_key)

    def list_orders(self, customer: str, *, limit: int, before: int | None) -> tuple[list[Order], int | None]:
        """Returns at most `limit` of the customer's orders, the newest first, and the `before` of the next page."""
        query = select(OrderRow).where(col(OrderRow.customer) == customer)
        if before is not None:
            query = query.where(col(OrderRow.id) < before)
        with self._sessions.reading() as session:
            rows = session.exec(query.order_by(col(OrderRow.id).desc()).limit(limit + 1)).all()
            page, rest = rows[:limit], rows[limit:]
            return orders_of(session, page), page[-1].id if rest else None

    def why_unready(self) -> str | None:
        """Returns why no row can be written now, in one line; None if rows can be written."""
        return self._sessions.why_unwritable(OrderDatabase.metadata.sorted_tables)

    def _transaction(
        self, transaction_id: str, state: TransactionState, order_id: str | None, kind: TransactionKind = TransactionKind.ORDER
    ) -> Values:
        return transaction_values(transaction_id, state, order_id, kind, self._now_ms())

    def _require_no_doubt(self, session: Session, witness: Witness | None) -> None:
        reason = self._history.reason_to_doubt(session, witness)
        if reason is not None:
            raise HistoryDoubted(reason)

    def _find_one(self, *conditions: ColumnElement[bool]) -> Order | None:
        with self._sessions.reading() as session:
            rows = session.exec(select(OrderRow).where(*conditions)).all()
            return next(iter(orders_of(session, rows)), None)


def rows_of(order: Order) -> list[tuple[Table, Sequence[Values]]]:
    """Returns the rows of an order and its items, by their tables."""
    return [(_ORDERS, [order_values(order)]), (_ITEMS, item_values(order))]


def _insert_transaction(connection: Connection, values: Values) -> None:
    try:
        write_outcome(connection, _TRANSACTIONS, values)
    except DecidedBefore as error:
        raise TransactionFailed(Outcome.DECIDED_BEFORE) from error


def _locked(session: Session, order_id: str) -> OrderRow | None:
    """Returns the order's row, locked until the session ends. SQLite has one writer at a time anyway."""
    return session.exec(select(OrderRow).where(col(OrderRow.order_id) == order_id).with_for_update()).first()


def _expire_if_overdue(session: Session, row: OrderRow, now_ms: int) -> bool:
    """Expires an overdue order. Returns whether it did."""
    return order_of(row).is_overdue(now_ms) and _change(
        session, row, OrderEvent.EXPIRE, now_ms, "the deadline for its payment passed"
    )


def _change(session: Session, row: OrderRow, event: OrderEvent, now_ms: int, because: str | None = None) -> bool:
    """Applies the event to the order's row, and decides a PENDING transaction. Returns whether the event is possible."""
    after = next_state(OrderState(row.state), event)
    if after is None:
        return False
    row.state = after.value
    if event is OrderEvent.PAY:
        row.paid_at_ms = now_ms
    else:
        row.ended_at_ms, row.ended_because = now_ms, because
    session.add(row)
    session.flush()
    decided = TransactionState.COMMITTED if after.is_told else TransactionState.ROLLED_BACK
    is_its_own = col(TransactionRow.order_id) == row.order_id, col(TransactionRow.state) == TransactionState.PENDING.value
    session.execute(update(TransactionRow).where(*is_its_own).values(state=decided.value))
    return True


@contextmanager
def _unless_key_taken() -> Iterator[None]:
    """Raises TransactionFailed if another order has the idempotency key; another refusal passes through."""
    try:
        yield
    except DatabaseRefusal as refusal:
        if isinstance(refusal.__cause__, IntegrityError) and is_duplicate(refusal.__cause__, _ORDERS.c.idempotency_key):
            raise TransactionFailed(Outcome.KEY_TAKEN) from refusal
        raise


def _row_of(transaction_id: str) -> SelectOfScalar[TransactionRow]:
    return select(TransactionRow).where(col(TransactionRow.transaction_id) == transaction_id)


def _state_of(transaction_id: str) -> SelectOfScalar[str]:
    return select(TransactionRow.state).where(col(TransactionRow.transaction_id) == transaction_id)
