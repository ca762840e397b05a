"""The entries of the ledger. An order earns one point for each full currency unit of its total; a reversal subtracts them."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from order_messages.states import BY_REFUSAL, EntryKind

CENTS_IN_A_UNIT: Final = 100
RULE: Final = "one credit point for each full unit of currency"


def points_for(total_cents: int) -> int:
    """Returns the points of an order: one for each full currency unit, rounded down."""
    return total_cents // CENTS_IN_A_UNIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit:
    """The credit of an order, or the reversal of that credit.

    The reversal may be written before the credit, because messages of two topics arrive in any order. Until the credit is
    written too, the customer's balance is too low.
    """

    order_id: str
    customer: str
    amount_cents: int
    """The order's total in cents."""
    message_id: str
    transaction_id: str | None
    kind: EntryKind = EntryKind.CREDIT

    @property
    def points(self) -> int:
        """The points of the entry, negative for a reversal."""
        points = points_for(self.amount_cents)
        return points if self.kind is EntryKind.CREDIT else -points

    @property
    def key(self) -> tuple[str, EntryKind]:
        """The unique key of the entry in the ledger, which consists of order id and kind."""
        return self.order_id, self.kind

    def annulled(self) -> "tuple[Credit, Credit]":
        """Returns a credit and a reversal of amount 0.

        Once they are written, the order can no longer be credited or reversed.
        """
        nothing = replace(self, amount_cents=0, message_id=BY_REFUSAL + self.message_id)
        return replace(nothing, kind=EntryKind.CREDIT), replace(nothing, kind=EntryKind.REVERSAL)

    @property
    def is_annulled(self) -> bool:
        """True for an entry of a refused order."""
        return self.amount_cents == 0 and self.message_id.startswith(BY_REFUSAL)

    def is_redelivery_of(self, other: "Credit") -> bool:
        """Returns True if `other` is the same kind of entry for the same order, customer and amount.

        Any reversal of a refused order counts as a redelivery, whatever its amount, because there are no points to
        subtract.
        """
        if other.is_annulled:
            return (self.key, self.customer) == (other.key, other.customer) and self.kind is EntryKind.REVERSAL
        return (self.key, self.customer, self.amount_cents) == (other.key, other.customer, other.amount_cents)


class CreditOutcome(StrEnum):
    """The outcome of writing one entry, a credit or a reversal."""

    CREDITED = "CREDITED"
    """The entry was written."""
    ALREADY_CREDITED = "ALREADY_CREDITED"
    """The entry had been written before, because the message was redelivered. Nothing changed."""
    CONFLICTING = "CONFLICTING"
    """The ledger contains the entry with another amount or customer. A person must resolve this. Nothing changed."""
    REFUSED = "REFUSED"
    """The order was refused before; see `service_layer.crediting.Crediting.refuse`. Nothing changed."""
