"""Requests and responses as they are on the wire."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from credit_service.adapters.ledger import CustomerCredit
from credit_service.domain.credit import RULE, EntryKind


class CustomerCreditQuery(BaseModel):
    """What GET /customers/{id}/credit is asked."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    customer: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    limit: int = Field(20, ge=1, le=200, description="entries at most")


class EntryResponse(BaseModel):
    """One entry of the ledger: a credit, or the reversal of one, whose points are below zero."""

    order_id: str
    kind: EntryKind
    points: int
    amount_cents: int
    created_at_ms: int


class CustomerCreditResponse(BaseModel):
    """A customer's balance and latest entries, the newest first."""

    customer: str
    points: int
    rule: str = RULE
    entries: list[EntryResponse]

    @classmethod
    def of(cls, credit: CustomerCredit) -> Self:
        """The response for what the ledger found."""
        entries = [
            EntryResponse(
                order_id=entry.order_id,
                kind=entry.kind,
                points=entry.points,
                amount_cents=entry.amount_cents,
                created_at_ms=entry.created_at_ms,
            )
            for entry in credit.entries
        ]
        return cls(customer=credit.customer, points=credit.points, entries=entries)
