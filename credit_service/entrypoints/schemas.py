"""The schemas of HTTP requests and responses."""

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from credit_service.adapters.tables import CreditRow
from credit_service.domain.credit import RULE
from order_messages.states import EntryKind


class LimitQuery(BaseModel):
    """The parameters of GET /customers/{customer}/credit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    limit: int = Field(20, ge=1, le=200, description="maximum number of entries")


class CustomerCreditQuery(LimitQuery):
    """The parameters of GET /customers/{customer}/credit, including the customer in the path."""

    customer: Annotated[str, StringConstraints(min_length=1, max_length=100)]


class EntryResponse(BaseModel):
    """An entry of the ledger: a credit, or a reversal with negative points."""

    order_id: str
    kind: EntryKind
    points: int
    amount_cents: int
    created_at: str = Field(description="RFC 3339")
    created_at_ms: int
    message_id: str = Field(description="id of the message from which the entry was written")
    transaction_id: str | None


class OrderCreditResponse(BaseModel):
    """The entries of an order, oldest first, and the sum of their points."""

    order_id: str
    customer: str
    points: int
    entries: list[EntryResponse]

    @classmethod
    def of(cls, entries: Sequence[CreditRow]) -> Self:
        """Returns the response for an order's entries. `entries` must not be empty."""
        first = entries[0]
        return cls(
            order_id=first.order_id,
            customer=first.customer,
            points=sum(entry.points for entry in entries),
            entries=[EntryResponse.model_validate(entry, from_attributes=True) for entry in entries],
        )


class CustomerCreditResponse(BaseModel):
    """A customer's balance and latest entries, newest first."""

    customer: str
    points: int
    rule: str = RULE
    entries: list[EntryResponse]
