"""The timeline of an order: the events and their times, as stored in the order database."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from order_messages.states import OrderState, TransactionKind, TransactionState
from order_service.domain.order import Order


class TimelineEventKind(StrEnum):
    """The kind of a timeline event."""

    ASKED_FOR = "ASKED_FOR"
    """The request arrived, and the half message was sent."""
    STORED = "STORED"
    """The local transaction stored the order."""
    PAID = OrderState.PAID.value
    CANCELLED = OrderState.CANCELLED.value
    EXPIRED = OrderState.EXPIRED.value


@dataclass(frozen=True, slots=True)
class OrderTransaction:
    """A transaction that created or cancelled an order."""

    transaction_id: str
    kind: TransactionKind
    state: TransactionState
    written_at_ms: int


@dataclass(frozen=True, slots=True)
class OrderTimelineEvent:
    """An event of an order, and the transaction of its message, if it has one."""

    at_ms: int
    what: TimelineEventKind
    transaction_id: str | None = None
    state: TransactionState | None = None
    """The current state of the transaction."""
    because: str | None = None


def timeline(order: Order, transactions: Iterable[OrderTransaction]) -> list[OrderTimelineEvent]:
    """Returns the order's events, oldest first."""
    of_kind = {transaction.kind: transaction for transaction in transactions}
    stored, cancelled = of_kind.get(TransactionKind.ORDER), of_kind.get(TransactionKind.CANCELLATION)
    events = [OrderTimelineEvent(order.created_at_ms, TimelineEventKind.ASKED_FOR)]
    if stored is not None:
        events.append(_event(stored.written_at_ms, TimelineEventKind.STORED, stored))
    if order.paid_at_ms is not None:
        events.append(OrderTimelineEvent(order.paid_at_ms, TimelineEventKind.PAID))
    if order.ended_at_ms is not None:
        events.append(_event(order.ended_at_ms, TimelineEventKind(order.state), cancelled, order.ended_because))
    return sorted(events, key=lambda event: event.at_ms)


def _event(
    at_ms: int, what: TimelineEventKind, transaction: OrderTransaction | None, because: str | None = None
) -> OrderTimelineEvent:
    if transaction is None:
        return OrderTimelineEvent(at_ms, what, because=because)
    return OrderTimelineEvent(at_ms, what, transaction.transaction_id, transaction.state, because)
