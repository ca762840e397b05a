"""Serves PUT /repairs/{id}, which `python -m pipelines repair --apply` calls.

The route requires a key, and is disabled if no key is configured.
"""

from typing import Annotated, Final, Literal

from flask import Blueprint, Response, abort, current_app, request
from pydantic import BaseModel, ConfigDict, Field, RootModel, StringConstraints, TypeAdapter

from credit_service.adapters.repairs import Repairs
from service_runtime.http.requests import json_response
from service_runtime.http.write_guard import brings_key
from service_runtime.text import NO_CONTROL_CHARACTERS

repairs_api = Blueprint("repairs", __name__)

_Text = Annotated[str, StringConstraints(min_length=1, max_length=100), NO_CONTROL_CHARACTERS]


class ReverseRequest(BaseModel):
    """The request to reverse the credit of an order. The amount must match the credit's amount."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    action: Literal["reverse"]
    order_id: Annotated[_Text, StringConstraints(max_length=36)]
    amount_cents: int = Field(ge=0)
    reason: _Text


class RebuildRequest(BaseModel):
    """The request to rebuild a customer's balance from the entries."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    action: Literal["rebuild_balance"]
    customer: _Text
    reason: _Text


class RepairRequest(RootModel[Annotated[ReverseRequest | RebuildRequest, Field(discriminator="action")]]):
    """The body of PUT /repairs/{repair_id}."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"action": "rebuild_balance", "customer": "ada", "reason": "a test"}]}
    )


class RepairedResponse(BaseModel):
    """The customer's balance before and after the repair."""

    customer: str
    points_before: int | None
    points_after: int


_REPAIR_ID: Final[TypeAdapter[str]] = TypeAdapter(Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{1,50}$")])


@repairs_api.put("/repairs/<repair_id>")
def repair(repair_id: str) -> Response:
    """Applies a repair. Responds with 201 if the repair changed something, otherwise with 200."""
    repairs: Repairs = current_app.extensions["repairs"]
    key: str = current_app.extensions["repair_key"]
    if not key or not brings_key(request.headers.get("Authorization", ""), key):
        abort(
            403,
            "repairs require `Authorization: Bearer KEY` with the key of CREDIT_REPAIR_KEY_FILE; without that file they are off",
        )
    _REPAIR_ID.validate_python(repair_id)
    wanted = RepairRequest.model_validate_json(request.get_data()).root
    if isinstance(wanted, ReverseRequest):
        repaired = repairs.reverse(repair_id, wanted.order_id, wanted.amount_cents)
    else:
        repaired = repairs.rebuild_balance(repair_id, wanted.customer)
    return json_response(RepairedResponse.model_validate(repaired, from_attributes=True), 201 if repaired.is_new else 200)
