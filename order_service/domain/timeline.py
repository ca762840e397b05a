"""The events of an order with their times, as in the order database."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from order_messages.states import OrderState, TransactionKind, TransactionState
from order_service.domain.order import Order


class Happening(StrEnum):
    """The kind of an event of an order."""

    ASKED_FOR = "ASKED_FOR"
    """The request arrived; the half message went out."""
    STORED = "STORED"
    """The local transaction wrote the order."""
    PAID = OrderState.PAID.value
    CANCELLED = OrderState.CANCELLED.value
    EXPIRED = OrderState.EXPIRED.value


@dataclass(frozen=True, slots=True)
class OrderTransaction:
    """A transaction that names an order."""

    transaction_id: str
    kind: TransactionKind
    state: TransactionState
    written_at_ms: int


@dataclass(frozen=True, slots=True)
class OrderTimelineEvent:
    """An event of an order, with the transaction that sends its message, if any."""

    at_ms: int
    what: Happening
    transaction_id: str | None = None
    state: TransactionState | None = None
    """The state that the transaction has by now."""
    because: str | None = None


def timeline(order: Order, transactions: Iterable[OrderTransaction]) -> list[OrderTimelineEvent]:
    """Returns the order's events, the oldest first."""
    of_kind = {transaction.kind: transaction for transaction in transactions}
    stored, cancelled = of_kind.get(TransactionKind.ORDER), of_kind.get(TransactionKind.CANCELLATION)
    events = [OrderTimelineEvent(order.created_at_ms, Happening.ASKED_FOR)]
    if stored is not None:
        events.append(_told(stored.written_at_ms, Happening.STORED, stored))
    if order.paid_at_ms is not None:
        events.append(OrderTimelineEvent(order.paid_at_ms, Happening.PAID))
    if order.ended_at_ms is not None:
        events.append(_told(order.ended_at_ms, Happening(order.state), cancelled, order.ended_because))
    return sorted(events, key=lambda event: event.at_ms)


def _told(at_ms: int, what: Happening, by: OrderTransaction | None, because: str | None = None) -> OrderTimelineEvent:
    if by is None:
        return OrderTimelineEvent(at_ms, what, because=because)
    return OrderTimelineEvent(at_ms, what, by.transaction_id, by.state, because)
