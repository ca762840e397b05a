"""Marks an order that is to be paid later as paid. The next check-back is then answered COMMIT."""

from collections.abc import Callable
from dataclasses import dataclass

from order_messages.states import OrderState
from order_service.domain.life_cycle import OrderEvent
from order_service.domain.order import Order
from order_service.service_layer.order_store import OrderStore


class UnknownOrder(Exception):
    """There is no order with this id."""


class ImpossibleNow(Exception):
    """The request is not allowed in the order's state, which the text names. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class OrderPaying:
    """Marks orders as paid. There is no payment provider, so each request counts as a payment."""

    store: OrderStore
    now_ms: Callable[[], int]

    def pay(self, order_id: str) -> Order:
        """Pays an order and returns it. Paying it again changes nothing. Raises UnknownOrder and ImpossibleNow."""
        order = self.store.change_unpaid(order_id, OrderEvent.PAY, self.now_ms())
        if order is None:
            raise UnknownOrder(f"no order has the id {order_id}")
        if order.state is not OrderState.PAID:
            raise ImpossibleNow(f"the order is {order.state}; only an order that awaits payment can be paid")
        return order
