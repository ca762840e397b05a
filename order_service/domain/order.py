"""Orders, their limits, and the rule that refuses one. Money is in integer cents, hundredths of a currency's unit."""

from dataclasses import dataclass
from typing import Final

from order_messages.states import OrderState
from order_service.domain.life_cycle import OrderEvent

MAX_CUSTOMER_LENGTH: Final = 100
MAX_ITEMS: Final = 100
MAX_NAME_LENGTH: Final = 200
MAX_QUANTITY: Final = 10_000
MAX_PRICE_CENTS: Final = 100_000_000
MAX_IDEMPOTENCY_KEY_LENGTH: Final = 255
MAX_REASON_LENGTH: Final = 200


@dataclass(frozen=True, slots=True)
class Item:
    """One line of an order: a quantity of one article, and its price for each."""

    name: str
    quantity: int
    price_cents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A customer's order. It exists since its local commit."""

    order_id: str
    customer: str
    items: tuple[Item, ...]
    currency: str
    created_at_ms: int
    """Milliseconds since the epoch, by the order service's clock."""
    idempotency_key: str | None = None
    """The customer's name for the request, so that a repetition does not order twice. Each customer has separate keys."""
    state: OrderState = OrderState.PLACED
    pay_until_ms: int | None = None
    """The deadline of an order that is to be paid later; None for one that is paid at once."""
    paid_at_ms: int | None = None
    ended_at_ms: int | None = None
    """The time of its cancellation or expiry."""
    ended_because: str | None = None

    @property
    def total_cents(self) -> int:
        """The price of all items together."""
        return sum(item.quantity * item.price_cents for item in self.items)

    def asks_for_the_same(self, other: "Order") -> bool:
        """Returns whether both come from the same request: customer, items, currency and way of paying. Ignores ids and times."""
        return self._request == other._request

    def is_overdue(self, now_ms: int) -> bool:
        """Returns whether it still awaits its payment after its deadline."""
        return self.state is OrderState.AWAITING_PAYMENT and self.pay_until_ms is not None and now_ms >= self.pay_until_ms

    @property
    def _request(self) -> tuple[object, ...]:
        return self.customer, self.items, self.currency, self.pay_until_ms is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancellation:
    """The wish to cancel an order whose message was sent."""

    order: Order
    reason: str
    cancelled_at_ms: int
    event: OrderEvent = OrderEvent.CANCEL
    """The event of the order; possible only for a told one."""

    @property
    def order_id(self) -> str:
        """The id of the order."""
        return self.order.order_id


def reason_to_refuse(order: Order, limit_cents: int) -> str | None:
    """Returns why the local transaction must roll the order back, or None if it may store it."""
    if order.total_cents > limit_cents:
        return f"the order's total of {_amount(order.total_cents)} is above the limit of {_amount(limit_cents)}"
    return None


def _amount(cents: int) -> str:
    return f"{cents // 100:,}.{cents % 100:02d}"
