"""Places an order: the half message, the local transaction, and what to tell the caller."""

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from broker.message import Message
from order_service.domain.order import Item, Order
from order_service.domain.transaction import TransactionState
from order_service.service_layer.attempt import Attempt, Outcome, Progress
from order_service.service_layer.order_message import order_message
from order_service.service_layer.order_store import OrderStore


class PlacingError(Exception):
    """Base of the reasons why an order was not placed. No order row exists, and none will come."""


class BrokerUnavailable(PlacingError):
    """The broker did not store the half message."""


class OrderNotStored(PlacingError):
    """The database did not take the order."""


class OrderRefused(PlacingError):
    """A rule refused the order; its transaction is rolled back."""


class TransactionExpired(PlacingError):
    """The local transaction took so long that check-back rolled it back first; trying again is fine."""


class KeyReused(PlacingError):
    """The customer used the idempotency key in a request for something else."""


class TransactionalSender(Protocol):
    """The port to the broker."""

    def send_in_transaction(self, message: Message, attempt: Attempt) -> None:
        """Sends the half message, runs the local transaction with the attempt, and sends the broker COMMIT or ROLLBACK.

        Raises BrokerUnavailable, and OutcomePending if the local transaction may be running still.
        """


class OutcomePending(Exception):
    """The time allowed was over before the outcome was known."""


@dataclass(frozen=True, slots=True)
class Placed:
    """An order and the state of its transaction; `is_replay` if an earlier request had placed it."""

    order: Order
    transaction_id: str | None
    state: TransactionState
    is_replay: bool = False


@dataclass(frozen=True, slots=True)
class OrderPlacing:
    """The one use case that writes."""

    store: OrderStore
    sender: TransactionalSender
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000

    def place(self, *, customer: str, items: tuple[Item, ...], currency: str, idempotency_key: str | None) -> Placed:
        """The order, COMMITTED or, where nobody can say yet, UNKNOWN. Raises a PlacingError otherwise.

        A customer who repeats a request under its idempotency key gets the order that exists. A DatabaseUnavailable passes
        through.
        """
        order = Order(
            order_id=str(uuid.uuid4()),
            customer=customer,
            items=items,
            currency=currency,
            created_at_ms=self.now_ms(),
            idempotency_key=idempotency_key,
        )
        if (earlier := self._placed_earlier(order)) is not None:
            return earlier
        return self._answer(order, self._attempt(Attempt(order)))

    def _attempt(self, attempt: Attempt) -> Progress:
        """Sends the order, and takes what is known of the attempt when the wait is over: it may go on meanwhile."""
        try:
            self.sender.send_in_transaction(order_message(attempt.order), attempt)
        except BrokerUnavailable:
            progress = attempt.progress
            if progress.outcome is Outcome.NOT_STARTED:
                raise
            return progress
        except OutcomePending:
            progress = attempt.progress
            return Progress(Outcome.UNKNOWN) if progress.outcome is Outcome.NOT_STARTED else progress
        return attempt.progress

    def _answer(self, order: Order, progress: Progress) -> Placed:
        match progress.outcome:
            case Outcome.STORED:
                return Placed(order, progress.transaction_id, TransactionState.COMMITTED)
            case Outcome.UNKNOWN | Outcome.RUNNING:
                return Placed(order, progress.transaction_id, TransactionState.UNKNOWN)
            case Outcome.KEY_TAKEN if (earlier := self._placed_earlier(order)) is not None:
                return earlier
            case Outcome.REFUSED:
                raise OrderRefused(progress.reason)
            case Outcome.DECIDED_BEFORE:
                raise TransactionExpired(progress.outcome.value)
            case Outcome.NOT_STARTED:
                raise BrokerUnavailable(progress.outcome.value)
            case _:
                raise OrderNotStored(progress.outcome.value)

    def _placed_earlier(self, order: Order) -> Placed | None:
        if order.idempotency_key is None:
            return None
        earlier = self.store.find_order_by_key(order.customer, order.idempotency_key)
        if earlier is None:
            return None
        if not earlier.asks_for_the_same(order):
            raise KeyReused("this customer used the idempotency key for a different order")
        transaction_id = self.store.find_transaction_id(earlier.order_id)
        return Placed(earlier, transaction_id, TransactionState.COMMITTED, is_replay=True)
