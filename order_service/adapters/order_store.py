"""Orders and their transactions in the database; where local transaction and check-back are kept apart.

Both write the transaction's row, whose key is the transaction id: the local transaction with COMMITTED and the order, in one
database transaction; check-back, where it finds no row, with ROLLED_BACK. Whoever comes second fails on the key. So once
check-back has answered ROLLBACK, a local transaction that was merely slow cannot slip an order in behind it.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Engine, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlmodel import Session, col, select
from sqlmodel.sql.expression import SelectOfScalar

from order_service.adapters.tables import OrderDatabase, OrderItemRow, OrderRow, TransactionRow
from order_service.adapters.writers_turn import TurnNotGiven, WritersTurn
from order_service.domain.order import Item, Order
from order_service.domain.transaction import TransactionState
from service_runtime.constraints import is_duplicate

_TRANSACTION_ID: Final = OrderDatabase.metadata.tables["transactions"].c.transaction_id
_IDEMPOTENCY_KEY: Final = OrderDatabase.metadata.tables["orders"].c.idempotency_key

_TURN_TIMEOUT_S: Final = 5.0
"""As long as PostgreSQL lets a statement wait for a lock; after it SQLite itself waits up to 10 s for other processes."""

logger = logging.getLogger(__name__)


class OrderStoreError(Exception):
    """Base of what can go wrong here."""


class StoreUnavailable(OrderStoreError):
    """The database refused or did not answer; nothing was written."""


class OutcomeUnknown(OrderStoreError):
    """The commit itself failed: it may have happened or not."""


class TransactionDecided(OrderStoreError):
    """The transaction's row is there already: check-back has rolled it back."""


class IdempotencyKeyTaken(OrderStoreError):
    """Another order of the customer has the key."""


class OrderStore:
    """The order database; safe to use from several threads."""

    def __init__(self, engine: Engine) -> None:
        """`engine` is from `service_runtime.database.open_database`."""
        self._engine = engine
        self._reading = engine.execution_options(read_only=True)
        is_postgresql = engine.dialect.name == "postgresql"
        self._insert = postgresql.insert if is_postgresql else sqlite.insert
        self._turn = None if is_postgresql else WritersTurn(_TURN_TIMEOUT_S)

    def commit_order(self, order: Order, transaction_id: str) -> None:
        """Order, items and transaction row, durable together on return.

        Raises TransactionDecided, IdempotencyKeyTaken or StoreUnavailable when nothing was written, and OutcomeUnknown.
        """
        with self._writing() as session:
            session.add(_transaction_row(transaction_id, TransactionState.COMMITTED, order.order_id))
            with _unless_taken(_TRANSACTION_ID, TransactionDecided(f"transaction {transaction_id} is decided already")):
                session.flush()
            session.add(_order_row(order))
            with _unless_taken(_IDEMPOTENCY_KEY, IdempotencyKeyTaken("an order with this idempotency key exists")):
                session.flush()
            session.add_all(_item_rows(order))

    def settle(self, transaction_id: str, order_id: str | None = None) -> TransactionState:
        """COMMITTED or ROLLED_BACK, final from now on: with no row there, ROLLED_BACK is written first.

        ROLLED_BACK as well if the transaction committed another order than `order_id`: two messages with one id, and the row
        that is there keeps the second order out for ever. Raises StoreUnavailable or OutcomeUnknown; then it must be asked again.
        """
        marker = _transaction_row(transaction_id, TransactionState.ROLLED_BACK, None).model_dump()
        with self._writing() as session:
            session.execute(self._insert(TransactionRow).values(marker).on_conflict_do_nothing(index_elements=["transaction_id"]))
            row = session.exec(select(TransactionRow).where(col(TransactionRow.transaction_id) == transaction_id)).one()
            state, committed_order = TransactionState(row.state), row.order_id
        if state is TransactionState.COMMITTED and order_id not in (None, committed_order):
            logger.error("transaction %s committed order %s, and cannot speak for %s", transaction_id, committed_order, order_id)
            return TransactionState.ROLLED_BACK
        return state

    def find_transaction(self, transaction_id: str) -> TransactionState | None:
        """What became of it, or None while it is open; changes nothing."""
        with self._session() as session:
            state = session.exec(_state_of(transaction_id)).first()
        return None if state is None else TransactionState(state)

    def find_transaction_id(self, order_id: str) -> str | None:
        """The transaction that committed the order."""
        with self._session() as session:
            return session.exec(select(TransactionRow.transaction_id).where(col(TransactionRow.order_id) == order_id)).first()

    def find_order(self, order_id: str) -> Order | None:
        """The order with this id."""
        return self._find_one(col(OrderRow.order_id) == order_id)

    def find_order_by_key(self, customer: str, idempotency_key: str) -> Order | None:
        """The customer's order that was placed under this idempotency key."""
        return self._find_one(col(OrderRow.customer) == customer, col(OrderRow.idempotency_key) == idempotency_key)

    def list_orders(self, customer: str, *, limit: int, before: int | None) -> tuple[list[Order], int | None]:
        """The customer's orders, the newest first, at most `limit`; and what to pass as `before` for the next page."""
        query = select(OrderRow).where(col(OrderRow.customer) == customer)
        if before is not None:
            query = query.where(col(OrderRow.id) < before)
        with self._session() as session:
            rows = session.exec(query.order_by(col(OrderRow.id).desc()).limit(limit + 1)).all()
            page, rest = rows[:limit], rows[limit:]
            return _orders(session, page), page[-1].id if rest else None

    def is_reachable(self) -> bool:
        """Whether the database answers."""
        try:
            with self._session() as session:
                session.execute(text("SELECT 1"))
        except StoreUnavailable:
            return False
        return True

    def _find_one(self, *conditions: ColumnElement[bool]) -> Order | None:
        with self._session() as session:
            rows = session.exec(select(OrderRow).where(*conditions)).all()
            return next(iter(_orders(session, rows)), None)

    @contextmanager
    def _session(self) -> Iterator[Session]:
        try:
            with Session(self._reading) as session:
                yield session
        except SQLAlchemyError as error:
            raise StoreUnavailable(_in_one_line(error)) from error

    @contextmanager
    def _writing(self) -> Iterator[Session]:
        """A session that is committed at the end. Only an error of that commit leaves the outcome unknown."""
        try:
            with self._turn.taken() if self._turn else nullcontext(), Session(self._engine) as session:
                yield session
                session.flush()
                _commit(session)
        except TurnNotGiven as error:
            raise StoreUnavailable(str(error)) from None
        except SQLAlchemyError as error:
            raise StoreUnavailable(_in_one_line(error)) from error


def _commit(session: Session) -> None:
    connection = session.connection()
    try:
        session.commit()
    except SQLAlchemyError as error:
        # Back in the pool it might still hold the transaction, and its locks.
        connection.invalidate()
        raise OutcomeUnknown(_in_one_line(error)) from error


@contextmanager
def _unless_taken(key: Column[Any], if_taken: OrderStoreError) -> Iterator[None]:
    """Raises `if_taken` if a row with the same key is there; the violation of any other constraint passes through."""
    try:
        yield
    except IntegrityError as error:
        if is_duplicate(error, key):
            raise if_taken from error
        raise


def _state_of(transaction_id: str) -> SelectOfScalar[str]:
    return select(TransactionRow.state).where(col(TransactionRow.transaction_id) == transaction_id)


def _transaction_row(transaction_id: str, state: TransactionState, order_id: str | None) -> TransactionRow:
    now_ms = time.time_ns() // 1_000_000
    return TransactionRow(transaction_id=transaction_id, order_id=order_id, state=state.value, created_at_ms=now_ms)


def _order_row(order: Order) -> OrderRow:
    return OrderRow(
        order_id=order.order_id,
        customer=order.customer,
        total_cents=order.total_cents,
        currency=order.currency,
        idempotency_key=order.idempotency_key,
        created_at_ms=order.created_at_ms,
    )


def _item_rows(order: Order) -> list[OrderItemRow]:
    return [
        OrderItemRow(order_id=order.order_id, name=item.name, quantity=item.quantity, price_cents=item.price_cents)
        for item in order.items
    ]


def _orders(session: Session, rows: Sequence[OrderRow]) -> list[Order]:
    items: dict[str, list[Item]] = {row.order_id: [] for row in rows}
    query = select(OrderItemRow).where(col(OrderItemRow.order_id).in_(items)).order_by(col(OrderItemRow.id))
    for item in session.exec(query):
        items[item.order_id].append(Item(item.name, item.quantity, item.price_cents))
    return [
        Order(
            order_id=row.order_id,
            customer=row.customer,
            items=tuple(items[row.order_id]),
            currency=row.currency,
            created_at_ms=row.created_at_ms,
            idempotency_key=row.idempotency_key,
        )
        for row in rows
    ]


def _in_one_line(error: SQLAlchemyError) -> str:
    return " ".join(str(getattr(error, "orig", None) or error).split())
