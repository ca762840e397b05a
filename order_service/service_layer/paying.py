"""Marks an unpaid order as paid. The response to the next check-back is then COMMIT."""

from collections.abc import Callable
from dataclasses import dataclass

from order_messages.states import OrderState
from order_service.domain.life_cycle import OrderEvent
from order_service.domain.order import Order
from order_service.service_layer.order_store import OrderStore


class UnknownOrder(Exception):
    """Raised if there is no order with this id."""


class ImpossibleNow(Exception):
    """Raised if the order's state, which the error message names, does not allow the request. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class OrderPaying:
    """Marks orders as paid. There is no payment provider, so each request counts as a payment."""

    store: OrderStore
    now_ms: Callable[[], int]

    def pay(self, order_id: str) -> Order:
        """Marks an order as paid and returns it. A repeated payment changes nothing. Raises UnknownOrder or ImpossibleNow."""
        order = self.store.change_unpaid(order_id, OrderEvent.PAY, self.now_ms())
        if order is None:
            raise UnknownOrder(f"no order has the id {order_id}")
        if order.state is not OrderState.PAID:
            raise ImpossibleNow(f"the order is {order.state}; only an order that awaits payment can be paid")
        return order
