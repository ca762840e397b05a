"""The port to the writer of credits, and its two errors."""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Protocol

from credit_service.domain.credit import Credit, CreditOutcome


class CreditingUnavailable(Exception):
    """Redis, the workers or the database are unavailable. The credits may or may not have been written, and are not the cause."""


class CreditingFailed(Exception):
    """The task that was to write the credits failed, perhaps because of one of them."""


class Later(Enum):
    """The reason why an order without an outcome is redelivered later."""

    GAVE_WAY = "GAVE_WAY"
    """The order was postponed so that other orders can use its thread. This does not count as a redelivery."""


Credited = CreditOutcome | Later | None
"""The outcome of an order. `Later` means that its redelivery is not counted, None that it is redelivered and counted."""


class Crediting(Protocol):
    """Writes credits. Repeated calls write the credit of an order only once."""

    def credit(self, credits: Sequence[Credit], *, is_again: bool, is_given_up: Callable[[], bool]) -> list[CreditOutcome | None]:
        """Returns an outcome for each credit, or None if it is unknown. Written credits are durable on return.

        `is_again` is True if the last attempt with the same credits was not answered. `is_given_up` is called while waiting, and
        ends the wait by returning True. Raises CreditingUnavailable, also when the wait was ended, and CreditingFailed.
        """
