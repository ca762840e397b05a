"""The port to the writer of credits, and its two ways to fail."""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Protocol

from credit_service.domain.credit import Credit, CreditOutcome


class CreditingUnavailable(Exception):
    """Redis, the workers or the database are away: the credits are not to blame, and may be written or not."""


class CreditingFailed(Exception):
    """The task that should write the credits failed, perhaps because of one of them."""


class Later(Enum):
    """The reason why an order without an outcome comes again."""

    GAVE_WAY = "GAVE_WAY"
    """It left its thread to others, and spends no redelivery."""


Credited = CreditOutcome | Later | None
"""An order's outcome, or that it comes again; None for one that spends a redelivery."""


class Crediting(Protocol):
    """Writes credits, each order's once, however often it is called."""

    def credit(self, credits: Sequence[Credit], *, is_again: bool, is_given_up: Callable[[], bool]) -> list[CreditOutcome | None]:
        """Returns one outcome for each credit, durable on return; None for an unknown answer.

        `is_again` says that the last try of the same credits had no answer. `is_given_up` is called while waiting. Raises
        CreditingUnavailable, also after giving up, and CreditingFailed.
        """
