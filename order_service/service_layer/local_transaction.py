"""The local transactions, which run in the order database between the half message and COMMIT or ROLLBACK."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from order_service.domain.order import Cancellation, Order, reason_to_refuse
from order_service.service_layer.attempt import Outcome, TransactionFailed, Wanted
from order_service.service_layer.order_store import OrderStore
from service_runtime.database.database_errors import DatabaseFailure, DatabaseUnavailable, OutcomeUnknown

logger = logging.getLogger(__name__)


class OrderLocalTransaction(Protocol):
    """The local transaction of one kind (order or cancellation)."""

    def run(self, wanted: Wanted, transaction_id: str) -> tuple[Outcome, str]:
        """Returns the outcome, and the reason if a rule refused it. Raises TypeError if `wanted` is of another kind."""


@dataclass(frozen=True, slots=True)
class PlacingLocally:
    """Stores an order if its total is within the limit."""

    store: OrderStore
    order_limit_cents: int

    def run(self, wanted: Wanted, transaction_id: str) -> tuple[Outcome, str]:
        """Stores the order, or refuses it if it exceeds the limit."""
        if not isinstance(wanted, Order):
            raise TypeError(f"expected an Order, got {type(wanted).__name__}")
        if refusal := reason_to_refuse(wanted, self.order_limit_cents):
            self._mark_rolled_back(transaction_id)
            return Outcome.REFUSED, refusal
        outcome = _outcome_of(lambda: self.store.store_order(wanted, transaction_id), transaction_id)
        if outcome is Outcome.STORED and not wanted.state.is_published:
            outcome = Outcome.AWAITING_PAYMENT
        return outcome, ""

    def _mark_rolled_back(self, transaction_id: str) -> None:
        """Writes the ROLLED_BACK row now, so that callers can read the state. Otherwise a check-back would write it."""
        try:
            self.store.settle(transaction_id)
        except DatabaseFailure as error:
            logger.warning("transaction %s is rolled back, but its row could not be written: %s", transaction_id, error)


@dataclass(frozen=True, slots=True)
class CancellingLocally:
    """Cancels a published order."""

    store: OrderStore

    def run(self, wanted: Wanted, transaction_id: str) -> tuple[Outcome, str]:
        """Stores the cancellation, unless the order cannot be cancelled."""
        if not isinstance(wanted, Cancellation):
            raise TypeError(f"expected a Cancellation, got {type(wanted).__name__}")
        return _outcome_of(lambda: self.store.store_cancellation(wanted, transaction_id), transaction_id), ""


def _outcome_of(store: Callable[[], None], transaction_id: str) -> Outcome:
    try:
        store()
    except TransactionFailed as failed:
        if failed.outcome is Outcome.DECIDED_BEFORE:
            logger.warning("transaction %s is rolled back: a check-back came before its local transaction", transaction_id)
        return failed.outcome
    except DatabaseUnavailable as error:
        logger.error("transaction %s is rolled back, the database did not accept it: %s", transaction_id, error)
        return Outcome.UNAVAILABLE
    except OutcomeUnknown as error:
        logger.error("the local commit of transaction %s failed, a check-back will decide: %s", transaction_id, error)
        return Outcome.UNKNOWN
    return Outcome.STORED
