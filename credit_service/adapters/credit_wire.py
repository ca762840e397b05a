"""The JSON form of credits in a task's argument, which consumers and workers of different versions exchange."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from credit_service.domain.credit import Credit
from order_messages.states import EntryKind

WireCredit = Mapping[str, Any]


class UnreadableCredit(Exception):
    """A task's argument is not a valid credit; the text names the invalid field."""


class _CreditFields(BaseModel):
    """The fields of `Credit`. An older worker ignores new fields, and a newer one has defaults for them."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    order_id: str
    customer: str
    amount_cents: int
    message_id: str
    transaction_id: str | None = None
    kind: EntryKind = Field(EntryKind.CREDIT, strict=False)
    request_id: str | None = None


_NAMES: Final = tuple(_CreditFields.model_fields)


def to_wire(credit: Credit) -> WireCredit:
    """Converts a credit to a dictionary of its fields."""
    return {name: getattr(credit, name) for name in _NAMES}


def from_wire(fields: WireCredit) -> Credit:
    """Converts a dictionary of fields to a credit. Raises UnreadableCredit."""
    try:
        read = _CreditFields.model_validate(fields)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, found['loc'])) or 'credit'}: {found['msg']}" for found in error.errors())
        raise UnreadableCredit(wrong) from None
    return Credit(**read.model_dump())
