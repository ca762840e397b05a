"""Cancels an order. One that was told as created is cancelled in a second transaction with the broker; another one just so."""

from collections.abc import Callable
from dataclasses import dataclass

from order_messages.states import OrderState, TransactionState
from order_service.domain.life_cycle import OrderEvent, next_state
from order_service.domain.order import Cancellation, Order
from order_service.service_layer.attempt import Attempt, AttemptProgress, Outcome, TransactionFailed
from order_service.service_layer.order_message import cancellation_message
from order_service.service_layer.order_store import OrderStore
from order_service.service_layer.paying import ImpossibleNow, UnknownOrder
from order_service.service_layer.sending import TransactionalSender, send_attempt


@dataclass(frozen=True, slots=True)
class Cancelled:
    """An order, and whether it is known to be cancelled; if not, it may become so, or not: ask again."""

    order: Order
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class OrderCancelling:
    """Cancels orders, at the wish of customers and for want of stock."""

    store: OrderStore
    sender: TransactionalSender
    now_ms: Callable[[], int]

    def cancel(self, order_id: str, reason: str) -> Cancelled:
        """The order, CANCELLED; cancelling it again changes nothing.

        Raises UnknownOrder, ImpossibleNow for an order that is EXPIRED, and TransactionFailed: then nothing was changed. A
        DatabaseFailure passes through.
        """
        order = self.store.cancel_unpaid(order_id, reason, self.now_ms())
        if order is None:
            raise UnknownOrder("no order has this id")
        if order.state is OrderState.CANCELLED:
            return Cancelled(order)
        if next_state(order.state, OrderEvent.CANCEL) is None:
            raise ImpossibleNow(f"the order is {order.state} and cannot be cancelled any more")
        cancellation = Cancellation(order=order, reason=reason, cancelled_at_ms=self.now_ms())
        witness = self.store.witness()
        progress = send_attempt(self.sender, cancellation_message(cancellation), Attempt(cancellation), witness)
        return self._answer(order, progress)

    def _answer(self, order: Order, progress: AttemptProgress) -> Cancelled:
        if progress.outcome.state is TransactionState.UNKNOWN:
            return Cancelled(order, is_known=False)
        if progress.outcome in (Outcome.STORED, Outcome.NOT_CANCELLABLE):
            # Not cancellable any more: another request has cancelled it in between.
            return Cancelled(self.store.find_order(order.order_id) or order)
        raise TransactionFailed(progress.outcome)
