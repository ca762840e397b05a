"""Converts between orders and database rows.

Rows are written as plain values, which is faster than SQLAlchemy's unit of work.
"""

from collections.abc import Sequence

from sqlmodel import Session, col, select

from order_messages.states import OrderState, TransactionKind, TransactionState
from order_service.adapters.tables import OrderItemRow, OrderRow, TransactionRow
from order_service.domain.order import Item, Order
from order_service.domain.timeline import OrderTransaction

Values = dict[str, object]
"""The values of a row by column name."""


def transaction_values(
    transaction_id: str, state: TransactionState, order_id: str | None, kind: TransactionKind, now_ms: int
) -> Values:
    """Returns the row of a transaction; `now_ms` is its creation time."""
    return {
        "transaction_id": transaction_id,
        "order_id": order_id,
        "state": state.value,
        "created_at_ms": now_ms,
        "kind": kind.value,
    }


def transaction_of(row: TransactionRow) -> OrderTransaction:
    """Converts a row into a transaction."""
    return OrderTransaction(row.transaction_id, TransactionKind(row.kind), TransactionState(row.state), row.created_at_ms)


def order_values(order: Order) -> Values:
    """Converts an order into a row, without its items."""
    return {
        "order_id": order.order_id,
        "customer": order.customer,
        "total_cents": order.total_cents,
        "currency": order.currency,
        "idempotency_key": order.idempotency_key,
        "created_at_ms": order.created_at_ms,
        "state": order.state.value,
        "pay_until_ms": order.pay_until_ms,
        "paid_at_ms": order.paid_at_ms,
        "ended_at_ms": order.ended_at_ms,
        "ended_because": order.ended_because,
    }


def item_values(order: Order) -> list[Values]:
    """Converts the order's items into rows, in the same order."""
    return [
        {"order_id": order.order_id, "name": item.name, "quantity": item.quantity, "price_cents": item.price_cents}
        for item in order.items
    ]


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
