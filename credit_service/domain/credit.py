"""Entries of the ledger: one credit point for each full unit of currency of an order's total, and the reversals of points."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from order_messages.states import BY_REFUSAL, EntryKind

CENTS_IN_A_UNIT: Final = 100
RULE: Final = "one credit point for each full unit of currency"


def points_for(total_cents: int) -> int:
    """Returns the points of an order: one for each full unit of currency, none for a part of a unit."""
    return total_cents // CENTS_IN_A_UNIT


_SIGN_OF: Final = {EntryKind.CREDIT: 1, EntryKind.REVERSAL: -1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit:
    """The credit of an order for its customer, or its reversal.

    The reversal may be written before the credit: messages of two topics come in any order. The balance is below zero until the
    credit is written as well, and right after that.
    """

    order_id: str
    customer: str
    amount_cents: int
    """The order's total."""
    message_id: str
    transaction_id: str | None
    kind: EntryKind = EntryKind.CREDIT
    request_id: str | None = None
    """Of the HTTP request that began it all, for log lines; the ledger does not keep it."""

    @property
    def points(self) -> int:
        """The points with their sign, negative for a reversal."""
        return _SIGN_OF[self.kind] * points_for(self.amount_cents)

    @property
    def key(self) -> tuple[str, EntryKind]:
        """The key by which the ledger keeps an entry once: order and kind."""
        return self.order_id, self.kind

    def annulled(self) -> "tuple[Credit, Credit]":
        """Returns a credit and a reversal of nothing. Once they are written, the order can be neither credited nor reversed."""
        nothing = replace(self, amount_cents=0, message_id=BY_REFUSAL + self.message_id)
        return replace(nothing, kind=EntryKind.CREDIT), replace(nothing, kind=EntryKind.REVERSAL)

    @property
    def is_annulled(self) -> bool:
        """True for an entry of a refused order."""
        return self.amount_cents == 0 and self.message_id.startswith(BY_REFUSAL)

    def is_redelivery_of(self, other: "Credit") -> bool:
        """Returns whether both are the same kind of entry for the same order, customer and amount.

        A reversal of a refused order counts as one: there is nothing to take back.
        """
        if other.is_annulled:
            return (self.key, self.customer) == (other.key, other.customer) and self.kind is EntryKind.REVERSAL
        return (self.key, self.customer, self.amount_cents) == (other.key, other.customer, other.amount_cents)


class CreditOutcome(StrEnum):
    """The outcome of writing one entry, a credit or a reversal."""

    CREDITED = "CREDITED"
    """The entry is written."""
    ALREADY_CREDITED = "ALREADY_CREDITED"
    """A redelivery; nothing changed."""
    CONFLICTING = "CONFLICTING"
    """The ledger has the entry with another amount or for another customer: somebody must look at it. Nothing changed."""
    REFUSED = "REFUSED"
    """The order was refused before, and its cancellation asked for: see `service_layer.refusing`. Nothing changed."""
    IMPOSSIBLE = "IMPOSSIBLE"
    """The database refuses this one. Nothing changed. Whose fault that is `service_layer.fair_crediting` finds out."""
