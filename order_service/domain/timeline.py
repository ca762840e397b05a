"""The events of an order with their times, as in the order database."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from order_service.domain.life_cycle import OrderState
from order_service.domain.order import Order
from order_service.domain.transaction import TransactionKind, TransactionState


class Happening(StrEnum):
    """The kind of an event of an order."""

    ASKED_FOR = "ASKED_FOR"
    """The request arrived; the half message went out."""
    STORED = "STORED"
    """The local transaction wrote the order."""
    PAID = "PAID"
    CANCELLED = "CANCELLED"
    EXPIRED = "EXPIRED"


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction that names an order."""

    transaction_id: str
    kind: TransactionKind
    state: TransactionState
    written_at_ms: int


@dataclass(frozen=True, slots=True)
class Event:
    """An event of an order, with the transaction that sends its message, if any."""

    at_ms: int
    what: Happening
    transaction_id: str | None = None
    state: TransactionState | None = None
    """The state that the transaction has by now."""
    because: str | None = None


def timeline(order: Order, transactions: Iterable[Transaction]) -> list[Event]:
    """Returns the order's events, the oldest first."""
    of_kind = {transaction.kind: transaction for transaction in transactions}
    stored, cancelled = of_kind.get(TransactionKind.ORDER), of_kind.get(TransactionKind.CANCELLATION)
    events = [Event(order.created_at_ms, Happening.ASKED_FOR)]
    if stored is not None:
        events.append(_told(stored.written_at_ms, Happening.STORED, stored))
    if order.paid_at_ms is not None:
        events.append(Event(order.paid_at_ms, Happening.PAID))
    if order.ended_at_ms is not None:
        what = Happening.EXPIRED if order.state is OrderState.EXPIRED else Happening.CANCELLED
        events.append(_told(order.ended_at_ms, what, cancelled, order.ended_because))
    return sorted(events, key=lambda event: event.at_ms)


def _told(at_ms: int, what: Happening, by: Transaction | None, because: str | None = None) -> Event:
    if by is None:
        return Event(at_ms, what, because=because)
    return Event(at_ms, what, by.transaction_id, by.state, because)
