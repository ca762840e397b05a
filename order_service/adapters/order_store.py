"""Stores orders and transactions. Only one of a local transaction and its check-back can decide the transaction.

Both insert the transaction's row, whose primary key is the transaction id. The local transaction inserts COMMITTED
together with the order, in one database transaction. The check-back inserts ROLLED_BACK if it finds no row. The
second INSERT fails because the key already exists. After ROLLBACK was returned for a check-back, a slow local
transaction therefore cannot store its order. This works only within one database: a database that may be an old copy
of the sender's does not write ROLLED_BACK (`adapters.order_history`).

An order that is paid later is stored with a PENDING transaction. Payment, cancellation and expiry lock the order's
row, change its state according to `domain.life_cycle`, and decide the transaction in the same database transaction.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy import ColumnElement, Connection, Engine, update
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, col, select
from sqlmodel.sql.expression import SelectOfScalar

from order_messages.states import OrderState, TransactionKind, TransactionState
from order_service.adapters.local_transaction import ORDERS, TRANSACTIONS, Values, insert_order
from order_service.adapters.order_history import OrderHistory
from order_service.adapters.tables import OrderDatabase, OrderItemRow, OrderRow, TransactionRow
from order_service.domain.history import Witness
from order_service.domain.life_cycle import OrderEvent, next_state
from order_service.domain.order import Cancellation, Item, Order, OrderTransaction
from order_service.service_layer.attempt import Outcome, TransactionFailed
from rocketmq_broker.databases import DecidedBefore
from rocketmq_broker.databases.sqlalchemy import settled_state, write_outcome
from rocketmq_broker.world import World
from service_runtime.database.constraints import is_duplicate
from service_runtime.database.database_errors import DatabaseRefusal
from service_runtime.database.sessions import Sessions

logger = logging.getLogger(__name__)


class SqlOrderStore:
    """The order database. Thread-safe. All methods raise DatabaseUnavailable."""

    def __init__(self, engine: Engine, world: World) -> None:
        """Creates a store. `engine` must be a result of `service_runtime.database.opening.open_database`."""
        self._now_ms = world.wall_ms
        self._sessions = Sessions(engine, now_s=world.steady_s, acquire=world.acquire)
        self.history = OrderHistory(self._sessions, world)

    def store_order(self, order: Order, transaction_id: str) -> None:
        """Writes order, items and transaction row in one database transaction, which is durable on return.

        Raises TransactionFailed (DECIDED_BEFORE, KEY_TAKEN) or DatabaseUnavailable if nothing was written, else OutcomeUnknown.
        """
        state = TransactionState.PENDING if order.is_paid_later else TransactionState.COMMITTED
        transaction = self._transaction(transaction_id, state, order.order_id)
        with _unless_key_taken():
            is_first = self._sessions.in_one_statement(lambda connection: insert_order(connection, order, transaction))
        if not is_first:
            raise TransactionFailed(Outcome.DECIDED_BEFORE)
        self.history.note_local_commit(transaction_id)

    def store_cancellation(self, cancellation: Cancellation, transaction_id: str) -> None:
        """Writes the state CANCELLED and the transaction's row in one database transaction, which is durable on return.

        Raises TransactionFailed (DECIDED_BEFORE, NOT_CANCELLABLE) or DatabaseUnavailable if nothing was written, else
        OutcomeUnknown.
        """
        kind = TransactionKind.CANCELLATION
        committed = self._transaction(transaction_id, TransactionState.COMMITTED, cancellation.order_id, kind)
        with self._sessions.writing() as session:
            _insert_transaction(session.connection(), committed)
            row = _locked(session, cancellation.order_id)
            if row is None or not order_of(row).state.is_published:
                reason = f"order {cancellation.order_id} is {row.state if row else 'unknown'}"
                raise TransactionFailed(Outcome.NOT_CANCELLABLE, reason)
            _change(session, row, OrderEvent.CANCEL, cancellation.cancelled_at_ms, cancellation.reason)
        self.history.note_local_commit(transaction_id)

    def change_unpaid(self, order_id: str, event: OrderEvent, now_ms: int, reason: str | None = None) -> Order | None:
        """Marks an unpaid order as paid or cancelled, or as expired if overdue.

        Returns the order, or None for an unknown id. Raises HistoryDoubted, and does not end the order, if the database may
        be an old copy that lacks the payment.
        """
        with self._sessions.writing() as session:
            row = _locked(session, order_id)
            if row is None:
                return None
            if OrderState(row.state) is OrderState.AWAITING_PAYMENT:
                if event is not OrderEvent.PAY or order_of(row).is_overdue(now_ms):
                    self.history.require_no_doubt(session, None)
                if not _expire_if_overdue(session, row, now_ms):
                    _change(session, row, event, now_ms, reason)
            return orders_of(session, [row])[0]

    def expire_if_overdue(self, transaction_id: str, now_ms: int, witness: Witness | None = None) -> TransactionState:
        """Expires the order of a PENDING transaction if it is unpaid after its deadline. Returns the transaction's state.

        An order of another process does not expire at the first check-back in this process; see `OrderHistory.was_asked_before`.
        Raises DatabaseUnavailable, OutcomeUnknown or HistoryDoubted; the broker must then check again.
        """
        with self._sessions.writing() as session:
            self.history.require_no_doubt(session, witness)
            transaction = session.exec(_row_of(transaction_id)).one()
            row = _locked(session, transaction.order_id or "")
            if row is not None and self.history.was_asked_before(transaction_id, witness):
                _expire_if_overdue(session, row, now_ms)
            session.refresh(transaction)  # a payment may have decided it while this session waited for the lock
            return TransactionState(transaction.state)

    def settle(
        self,
        transaction_id: str,
        order_id: str | None = None,
        kind: TransactionKind = TransactionKind.ORDER,
        witness: Witness | None = None,
    ) -> TransactionState:
        """Returns COMMITTED or ROLLED_BACK, which are final, or PENDING. Writes ROLLED_BACK first if there is no row.

        Returns ROLLED_BACK if the row belongs to another order than `order_id`. Two messages then have the same transaction id,
        and the row prevents the second order from being stored. Raises DatabaseUnavailable, OutcomeUnknown, or HistoryDoubted if
        there is no row and the database may be an old copy; the broker must then check again.
        """
        marker = self._transaction(transaction_id, TransactionState.ROLLED_BACK, None, kind)
        with self._sessions.writing() as session:
            row = session.exec(_row_of(transaction_id)).first()
            if row is None:
                self.history.require_no_doubt(session, witness)
                settled_state(session.connection(), TRANSACTIONS, marker)
                row = session.exec(_row_of(transaction_id)).one()
            state, stored_order = TransactionState(row.state), row.order_id
        if state is not TransactionState.ROLLED_BACK and order_id not in (None, stored_order):
            logger.error(
                "order %s is rolled back: its transaction id %s already belongs to order %s",
                order_id, transaction_id, stored_order,
            )  # fmt: skip
            return TransactionState.ROLLED_BACK
        return state

    def find_transaction(self, transaction_id: str) -> TransactionState | None:
        """Returns the state of the transaction, or None if the transaction has no row."""
        with self._sessions.reading() as session:
            row = session.exec(_row_of(transaction_id)).first()
            return None if row is None else TransactionState(row.state)

    def find_transactions(self, order_id: str) -> list[OrderTransaction]:
        """Returns the transactions of the order, oldest first."""
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
        """Returns at most `limit` of the customer's orders, newest first, and the value of `before` for the next page."""
        query = select(OrderRow).where(col(OrderRow.customer) == customer)
        if before is not None:
            query = query.where(col(OrderRow.id) < before)
        with self._sessions.reading() as session:
            rows = session.exec(query.order_by(col(OrderRow.id).desc()).limit(limit + 1)).all()
            page, rest = rows[:limit], rows[limit:]
            return orders_of(session, page), page[-1].id if rest else None

    def why_unready(self) -> str | None:
        """Returns a one-line reason why rows cannot be written now, or None if they can."""
        return self._sessions.why_unwritable(OrderDatabase.metadata.sorted_tables)

    def _transaction(
        self, transaction_id: str, state: TransactionState, order_id: str | None, kind: TransactionKind = TransactionKind.ORDER
    ) -> Values:
        return {
            "transaction_id": transaction_id,
            "order_id": order_id,
            "state": state.value,
            "created_at_ms": self._now_ms(),
            "kind": kind.value,
        }

    def _find_one(self, *conditions: ColumnElement[bool]) -> Order | None:
        with self._sessions.reading() as session:
            rows = session.exec(select(OrderRow).where(*conditions)).all()
            return next(iter(orders_of(session, rows)), None)


def _insert_transaction(connection: Connection, values: Values) -> None:
    try:
        write_outcome(connection, TRANSACTIONS, values)
    except DecidedBefore as error:
        raise TransactionFailed(Outcome.DECIDED_BEFORE) from error


def _locked(session: Session, order_id: str) -> OrderRow | None:
    """Returns the order's row, locked until the session ends. SQLite needs no lock, because it has one writer at a time."""
    return session.exec(select(OrderRow).where(col(OrderRow.order_id) == order_id).with_for_update()).first()


def _expire_if_overdue(session: Session, row: OrderRow, now_ms: int) -> bool:
    """Expires the order if it is overdue. Returns True if the order was overdue."""
    return order_of(row).is_overdue(now_ms) and _change(
        session, row, OrderEvent.EXPIRE, now_ms, "the deadline for its payment passed"
    )


def _change(session: Session, row: OrderRow, event: OrderEvent, now_ms: int, because: str | None = None) -> bool:
    """Applies the event to the order's row and decides its PENDING transaction. Returns False if the event is not allowed."""
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
    decided = TransactionState.COMMITTED if after.is_published else TransactionState.ROLLED_BACK
    is_its_own = col(TransactionRow.order_id) == row.order_id, col(TransactionRow.state) == TransactionState.PENDING.value
    session.execute(update(TransactionRow).where(*is_its_own).values(state=decided.value))
    return True


@contextmanager
def _unless_key_taken() -> Iterator[None]:
    """Raises TransactionFailed if another order has the idempotency key. Re-raises other refusals unchanged."""
    try:
        yield
    except DatabaseRefusal as refusal:
        if isinstance(refusal.__cause__, IntegrityError) and is_duplicate(refusal.__cause__, ORDERS.c.idempotency_key):
            raise TransactionFailed(Outcome.KEY_TAKEN) from refusal
        raise


def _row_of(transaction_id: str) -> SelectOfScalar[TransactionRow]:
    return select(TransactionRow).where(col(TransactionRow.transaction_id) == transaction_id)


def transaction_of(row: TransactionRow) -> OrderTransaction:
    """Converts a row into a transaction."""
    return OrderTransaction(row.transaction_id, TransactionKind(row.kind), TransactionState(row.state), row.created_at_ms)


def orders_of(session: Session, rows: Sequence[OrderRow]) -> list[Order]:
    """Converts rows into orders. Reads their items from the database."""
    items: dict[str, list[Item]] = {row.order_id: [] for row in rows}
    query = select(OrderItemRow).where(col(OrderItemRow.order_id).in_(items)).order_by(col(OrderItemRow.id))
    for item in session.exec(query):
        items[item.order_id].append(Item(item.name, item.quantity, item.price_cents))
    return [order_of(row, tuple(items[row.order_id])) for row in rows]


def order_of(row: OrderRow, items: tuple[Item, ...] = ()) -> Order:
    """Converts a row and its items into an order."""
    return Order(
        order_id=row.order_id,
        customer=row.customer,
        items=items,
        currency=row.currency,
        created_at_ms=row.created_at_ms,
        idempotency_key=row.idempotency_key,
        state=OrderState(row.state),
        pay_until_ms=row.pay_until_ms,
        paid_at_ms=row.paid_at_ms,
        ended_at_ms=row.ended_at_ms,
        ended_because=row.ended_because,
    )
