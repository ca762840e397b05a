"""Orders, and the rule for refusing an order. Amounts are integers, in cents of the currency."""

from dataclasses import dataclass
from typing import Final

from order_messages.states import OrderState, TransactionKind, TransactionState

MAX_REASON_LENGTH: Final = 200


@dataclass(frozen=True, slots=True)
class Item:
    """One line of an order: an article, its quantity, and the price of one piece."""

    name: str
    quantity: int
    price_cents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A customer's order. It exists once its local transaction has been committed."""

    order_id: str
    customer: str
    items: tuple[Item, ...]
    currency: str
    created_at_ms: int
    """The creation time in milliseconds since the epoch, by the order service's clock."""
    idempotency_key: str | None = None
    """The idempotency key that the customer sent.

    A repeated request with the same key does not place a second order. Keys of different customers are independent.
    """
    state: OrderState = OrderState.PLACED
    pay_until_ms: int | None = None
    """The payment deadline, in milliseconds since the epoch; None if the order is paid at once."""
    paid_at_ms: int | None = None
    ended_at_ms: int | None = None
    """The time of the cancellation or expiry, in milliseconds since the epoch; None before that."""
    ended_because: str | None = None

    @property
    def total_cents(self) -> int:
        """The total price of all items."""
        return sum(item.quantity * item.price_cents for item in self.items)

    @property
    def is_paid_later(self) -> bool:
        """True if the order has a payment deadline. Its message is published after the payment."""
        return self.pay_until_ms is not None

    def is_same_request(self, other: "Order") -> bool:
        """Returns True if customer, items, currency and kind of payment (now or later) are equal. Ignores ids and times."""
        mine, its = ((order.customer, order.items, order.currency, order.is_paid_later) for order in (self, other))
        return mine == its

    def is_overdue(self, now_ms: int) -> bool:
        """Returns True if the order still awaits its payment after the deadline."""
        return self.state is OrderState.AWAITING_PAYMENT and self.pay_until_ms is not None and now_ms >= self.pay_until_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancellation:
    """A request to cancel a published order."""

    order: Order
    reason: str
    cancelled_at_ms: int

    @property
    def order_id(self) -> str:
        """The id of the order."""
        return self.order.order_id


@dataclass(frozen=True, slots=True)
class OrderTransaction:
    """A transaction that created or cancelled an order."""

    transaction_id: str
    kind: TransactionKind
    state: TransactionState
    written_at_ms: int


def reason_to_refuse(order: Order, limit_cents: int) -> str | None:
    """Returns the reason why the local transaction must be rolled back, or None if the order may be stored."""
    if order.total_cents > limit_cents:
        return f"order total {_amount(order.total_cents)} exceeds the limit of {_amount(limit_cents)}"
    return None


def _amount(cents: int) -> str:
    return f"{cents // 100:,}.{cents % 100:02d}"
