"""Takes the payment of an order to be paid later. The broker learns of it by its next check-back."""

from collections.abc import Callable
from dataclasses import dataclass

from order_messages.states import OrderState
from order_service.domain.order import Order
from order_service.service_layer.order_store import OrderStore


class UnknownOrder(Exception):
    """No order has this id."""


class ImpossibleNow(Exception):
    """The order's state, named in the text, forbids the request. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class OrderPaying:
    """Pays orders. It asks no bank: each request counts as a payment."""

    store: OrderStore
    now_ms: Callable[[], int]

    def pay(self, order_id: str) -> Order:
        """Pays an order, and returns it. A second payment changes nothing. Raises UnknownOrder and ImpossibleNow."""
        order = self.store.pay(order_id, self.now_ms())
        if order is None:
            raise UnknownOrder("no order has this id")
        if order.state is not OrderState.PAID:
            raise ImpossibleNow(f"the order is {order.state}: only one that awaits its payment can be paid")
        return order
