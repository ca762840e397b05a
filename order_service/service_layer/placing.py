"""Places orders. Sends the half message, runs the local transaction, and returns the result to the caller."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from order_messages import order_created
from order_messages.order_created import OrderCreated, OrderedItem
from order_messages.states import OrderState, TransactionKind, TransactionState
from order_service.domain.order import Item, Order
from order_service.service_layer.attempt import Attempt, Outcome, TransactionalSender, TransactionFailed
from order_service.service_layer.order_store import OrderStore
from rocketmq_broker.message import Message
from service_runtime.observing.context import carried_properties


class KeyReused(Exception):
    """Raised if the customer used the idempotency key for a different request."""


@dataclass(frozen=True, slots=True)
class Placed:
    """An order and the state of its transaction. `is_replay` is True if an earlier request had placed the order."""

    order: Order
    transaction_id: str | None
    state: TransactionState
    is_replay: bool = False


@dataclass(frozen=True, slots=True)
class OrderPlacing:
    """Places orders that are paid at once or later."""

    store: OrderStore
    sender: TransactionalSender
    payment_deadline_ms: int
    """The time in milliseconds that is allowed for the payment of an order that is paid later."""
    now_ms: Callable[[], int]
    new_uuid: Callable[[], UUID]

    def place(
        self,
        *,
        customer: str,
        items: tuple[Item, ...],
        currency: str,
        idempotency_key: str | None,
        is_paid_later: bool = False,
    ) -> Placed:
        """Places an order and returns it with its transaction's state.

        The state is COMMITTED, PENDING if the order is paid later, or UNKNOWN if the outcome is not known yet. Returns the
        existing order if the customer repeats a request with its idempotency key. Raises KeyReused if that key was used for a
        different request, TransactionFailed if the order was not placed, and DatabaseFailure if the database fails.
        """
        now_ms = self.now_ms()
        order = Order(
            order_id=str(self.new_uuid()),
            customer=customer,
            items=items,
            currency=currency,
            created_at_ms=now_ms,
            idempotency_key=idempotency_key,
            state=OrderState.AWAITING_PAYMENT if is_paid_later else OrderState.PLACED,
            pay_until_ms=now_ms + self.payment_deadline_ms if is_paid_later else None,
        )
        if (earlier := self._placed_earlier(order)) is not None:
            return earlier
        attempt = Attempt(order)
        outcome = self.sender.send_in_transaction(order_message(order), attempt)
        if outcome is Outcome.KEY_TAKEN and (earlier := self._placed_earlier(order)) is not None:
            return earlier
        if outcome.problem is not None:
            raise TransactionFailed(outcome, attempt.reason)
        return Placed(order, attempt.transaction_id, outcome.state)

    def _placed_earlier(self, order: Order) -> Placed | None:
        if order.idempotency_key is None:
            return None
        earlier = self.store.find_order_by_key(order.customer, order.idempotency_key)
        if earlier is None:
            return None
        if not earlier.is_same_request(order):
            raise KeyReused("this customer used the idempotency key for a different order")
        of_kind = {one.kind: one for one in self.store.find_transactions(earlier.order_id)}
        stored = of_kind.get(TransactionKind.ORDER)
        if stored is None:
            return Placed(earlier, None, TransactionState.COMMITTED, is_replay=True)
        return Placed(earlier, stored.transaction_id, stored.state, is_replay=True)


def order_message(order: Order) -> Message:
    """Returns the message about a placed order, with the order id as its key. Consumers receive it only after COMMIT."""
    body = OrderCreated(
        version=order_created.VERSION,
        order_id=order.order_id,
        customer=order.customer,
        total_cents=order.total_cents,
        currency=order.currency,
        created_at_ms=order.created_at_ms,
        items=tuple(OrderedItem(name=item.name, quantity=item.quantity) for item in order.items),
    )
    return Message.of(
        order_created.TOPIC, body.encode(), tags=order_created.TAG, keys=[order.order_id], user_properties=carried_properties()
    )
