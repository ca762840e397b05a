"""Serves PUT /repairs/{id}, which `python -m pipelines repair --apply` calls.

The route requires a key, and is off without one.
"""

from typing import Annotated, Final, Literal, Self

from flask import Blueprint, Response, abort, current_app, request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter

from credit_service.adapters.repairs import Repaired, Repairs
from service_runtime.http.requests import json_response
from service_runtime.http.write_guard import brings_key
from service_runtime.text import NO_CONTROL_CHARACTERS

repairs_api = Blueprint("repairs", __name__)

_Text = Annotated[str, StringConstraints(min_length=1, max_length=100), NO_CONTROL_CHARACTERS]


class ReverseRequest(BaseModel):
    """Reverses the credit of an order if it has this amount."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    action: Literal["reverse"]
    order_id: Annotated[_Text, StringConstraints(max_length=36)]
    amount_cents: int = Field(ge=0)
    reason: _Text


class RebuildRequest(BaseModel):
    """Rebuilds a customer's balance from the entries."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    action: Literal["rebuild_balance"]
    customer: _Text
    reason: _Text


class RepairedResponse(BaseModel):
    """The customer's balance before and after the repair."""

    customer: str
    points_before: int | None
    points_after: int

    @classmethod
    def of(cls, repaired: Repaired) -> Self:
        """Returns the response for a repair."""
        return cls(customer=repaired.customer, points_before=repaired.points_before, points_after=repaired.points_after)


_WANTED: Final[TypeAdapter[ReverseRequest | RebuildRequest]] = TypeAdapter(
    Annotated[ReverseRequest | RebuildRequest, Field(discriminator="action")]
)
_REPAIR_ID: Final[TypeAdapter[str]] = TypeAdapter(Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{1,50}$")])


class RepairDesk:
    """Authorizes repair requests, and provides the repairs."""

    def __init__(self, repairs: Repairs, key: str) -> None:
        """`key` authorizes requests; an empty key authorizes none."""
        self.repairs = repairs
        self._key = key

    def lets_in(self, authorization: str) -> bool:
        """Returns True if a request with this Authorization header may repair."""
        return bool(self._key) and brings_key(authorization, self._key)


@repairs_api.put("/repairs/<repair_id>")
def repair(repair_id: str) -> Response:
    """Applies a repair. 201 if it changed something, 200 if there was nothing to change."""
    desk: RepairDesk | None = current_app.extensions.get("repair_desk")
    if desk is None or not desk.lets_in(request.headers.get("Authorization", "")):
        abort(
            403,
            "repairs require `Authorization: Bearer KEY` with the key of CREDIT_REPAIR_KEY_FILE; without that file they are off",
        )
    _REPAIR_ID.validate_python(repair_id)
    wanted = _WANTED.validate_json(request.get_data())
    if isinstance(wanted, ReverseRequest):
        repaired = desk.repairs.reverse(repair_id, wanted.order_id, wanted.amount_cents)
    else:
        repaired = desk.repairs.rebuild_balance(repair_id, wanted.customer)
    return json_response(RepairedResponse.of(repaired), 201 if repaired.is_new else 200)
