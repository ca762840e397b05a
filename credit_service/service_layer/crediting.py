"""The port to whoever writes credits, and the two ways in which it can fail."""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Protocol

from credit_service.domain.credit import Credit, CreditOutcome


class CreditingUnavailable(Exception):
    """Redis, the workers or the database are away: no fault of the credits, which may be written or not."""


class CreditingFailed(Exception):
    """The task that was to write the credits failed, and one of them may be the reason."""


class Later(Enum):
    """When an order comes again that has no outcome."""

    GAVE_WAY = "GAVE_WAY"
    """It left its thread to others, and spends no redelivery."""


Credited = CreditOutcome | Later | None
"""What became of an order: its outcome, or that it comes again; None for one that spends a redelivery."""


class Crediting(Protocol):
    """Writes credits, each order's once, however often it is asked to."""

    def credit(self, credits: Sequence[Credit], *, is_again: bool, is_given_up: Callable[[], bool]) -> list[CreditOutcome | None]:
        """One outcome for each credit, durable on return; None where the answer is not understood.

        `is_again` says that the same credits were asked for just before without an answer. `is_given_up` is asked while waiting.
        Raises CreditingUnavailable, also when it is given up, and CreditingFailed.
        """
