"""Takes the payment of an order that was to be paid later. The broker finds it by its next check-back."""

from collections.abc import Callable
from dataclasses import dataclass

from order_messages.states import OrderState
from order_service.domain.order import Order
from order_service.service_layer.order_store import OrderStore


class UnknownOrder(Exception):
    """No order has this id."""


class ImpossibleNow(Exception):
    """The order's state does not allow what is wanted; says which state that is. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class OrderPaying:
    """Pays orders. There is no bank behind it: who asks for it has paid."""

    store: OrderStore
    now_ms: Callable[[], int]

    def pay(self, order_id: str) -> Order:
        """The order, PAID; paying it again changes nothing. Raises UnknownOrder and ImpossibleNow."""
        order = self.store.pay(order_id, self.now_ms())
        if order is None:
            raise UnknownOrder("no order has this id")
        if order.state is not OrderState.PAID:
            raise ImpossibleNow(f"the order is {order.state}: only one that awaits its payment can be paid")
        return order
