"""One attempt to place an order: handed to the broker client as the local transaction's argument, read afterwards."""

from dataclasses import dataclass
from enum import Enum

from order_service.domain.order import Order


class Outcome(Enum):
    """What became of the attempt, as far as the order service knows."""

    NOT_STARTED = "the broker did not store the half message, so the local transaction did not run"
    COMMITTED = "order and transaction row are stored"
    REFUSED = "a rule refused the order"
    KEY_TAKEN = "another order has the idempotency key"
    DECIDED_BEFORE = "check-back had rolled the transaction back before the local transaction ran"
    UNAVAILABLE = "the database did not take the order"
    UNKNOWN = "the commit may have happened or not; check-back will decide"


@dataclass(slots=True)
class Attempt:
    """The order wanted, and what became of it; written by the local transaction in its own thread."""

    order: Order
    transaction_id: str | None = None
    outcome: Outcome = Outcome.NOT_STARTED
    reason: str = ""
