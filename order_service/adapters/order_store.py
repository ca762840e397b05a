"""Orders and their transactions in the database; here local transaction and check-back are kept apart.

Both write the transaction's row, whose key is the transaction id. The local transaction writes COMMITTED together with the order,
in one database transaction. Check-back writes ROLLED_BACK where it finds no row. Whoever comes second fails on the key. So once
check-back has answered ROLLBACK, a local transaction that was merely slow cannot slip an order in behind it.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Engine
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, col, select
from sqlmodel.sql.expression import SelectOfScalar

from order_service.adapters.tables import OrderDatabase, OrderItemRow, OrderRow, TransactionRow
from order_service.domain.order import Item, Order
from order_service.domain.transaction import TransactionState
from order_service.service_layer.order_store import IdempotencyKeyTaken, OrderNotTaken, TransactionDecided
from service_runtime.constraints import is_duplicate
from service_runtime.sessions import Sessions

_TRANSACTION_ID: Final = OrderDatabase.metadata.tables["transactions"].c.transaction_id
_IDEMPOTENCY_KEY: Final = OrderDatabase.metadata.tables["orders"].c.idempotency_key

logger = logging.getLogger(__name__)


class SqlOrderStore:
    """The order database; safe to use from several threads. Each method raises DatabaseUnavailable."""

    def __init__(self, engine: Engine) -> None:
        """`engine` is from `service_runtime.database.open_database`."""
        self._sessions = Sessions(engine)

    def store_order(self, order: Order, transaction_id: str) -> None:
        """Order, items and transaction row, durable together on return: this is the local commit.

        Raises TransactionDecided, IdempotencyKeyTaken or DatabaseUnavailable when nothing was written, and OutcomeUnknown.
        """
        with self._sessions.writing() as session:
            session.add(_transaction_row(transaction_id, TransactionState.COMMITTED, order.order_id))
            with _unless_taken(_TRANSACTION_ID, TransactionDecided(f"transaction {transaction_id} is decided already")):
                session.flush()
            session.add(_order_row(order))
            with _unless_taken(_IDEMPOTENCY_KEY, IdempotencyKeyTaken("an order with this idempotency key exists")):
                session.flush()
            session.add_all(_item_rows(order))

    def settle(self, transaction_id: str, order_id: str | None = None) -> TransactionState:
        """COMMITTED or ROLLED_BACK, final from now on: where there is no row, ROLLED_BACK is written first.

        The answer is ROLLED_BACK as well if the transaction's row belongs to another order than `order_id`: then two messages
        have one transaction id, and the row keeps the second order out for ever. Raises DatabaseUnavailable or OutcomeUnknown;
        then the broker must ask again.
        """
        marker = _transaction_row(transaction_id, TransactionState.ROLLED_BACK, None).model_dump()
        insert = self._sessions.insert(TransactionRow).values(marker)
        with self._sessions.writing() as session:
            session.execute(insert.on_conflict_do_nothing(index_elements=["transaction_id"]))
            row = session.exec(select(TransactionRow).where(col(TransactionRow.transaction_id) == transaction_id)).one()
            state, stored_order = TransactionState(row.state), row.order_id
        if state is TransactionState.COMMITTED and order_id not in (None, stored_order):
            logger.error(
                "transaction %s belongs to order %s: order %s, whose message has the same transaction id, is rolled back",
                transaction_id, stored_order, order_id,
            )  # fmt: skip
            return TransactionState.ROLLED_BACK
        return state

    def find_transaction(self, transaction_id: str) -> TransactionState | None:
        """The state of the transaction, or None while it is open; changes nothing."""
        with self._sessions.reading() as session:
            state = session.exec(_state_of(transaction_id)).first()
        return None if state is None else TransactionState(state)

    def find_transaction_id(self, order_id: str) -> str | None:
        """The transaction that wrote the order."""
        with self._sessions.reading() as session:
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
        with self._sessions.reading() as session:
            rows = session.exec(query.order_by(col(OrderRow.id).desc()).limit(limit + 1)).all()
            page, rest = rows[:limit], rows[limit:]
            return _orders(session, page), page[-1].id if rest else None

    def is_reachable(self) -> bool:
        """Whether the database answers; raises nothing."""
        return self._sessions.is_reachable()

    def _find_one(self, *conditions: ColumnElement[bool]) -> Order | None:
        with self._sessions.reading() as session:
            rows = session.exec(select(OrderRow).where(*conditions)).all()
            return next(iter(_orders(session, rows)), None)


@contextmanager
def _unless_taken(key: Column[Any], if_taken: OrderNotTaken) -> Iterator[None]:
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
