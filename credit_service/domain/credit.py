"""Credits: one credit point for each full unit of currency of an order's total."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

CENTS_IN_A_UNIT: Final = 100
RULE: Final = "one credit point for each full unit of currency"


def points_for(total_cents: int) -> int:
    """The points of an order: one for each full unit of currency; a part of a unit earns nothing."""
    return total_cents // CENTS_IN_A_UNIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit:
    """What an order earns its customer."""

    order_id: str
    customer: str
    amount_cents: int
    """The order's total."""
    message_id: str
    transaction_id: str | None

    @property
    def points(self) -> int:
        """See `points_for`."""
        return points_for(self.amount_cents)

    def is_redelivery_of(self, other: "Credit") -> bool:
        """Whether both are for the same order, customer and amount."""
        return (self.order_id, self.customer, self.amount_cents) == (other.order_id, other.customer, other.amount_cents)


class CreditOutcome(StrEnum):
    """How writing one credit ended."""

    CREDITED = "CREDITED"
    ALREADY_CREDITED = "ALREADY_CREDITED"
    """A redelivery; nothing changed."""
    CONFLICTING = "CONFLICTING"
    """The order was credited with another amount or to another customer: somebody must look at it. Nothing changed."""
    IMPOSSIBLE = "IMPOSSIBLE"
    """The database will not take this one, whatever is tried. Nothing changed."""
