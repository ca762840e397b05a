"""The message's schema, as the credit service reads it: topic `orders`, tag `created`, a JSON body."""

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from service_runtime.text import NO_CONTROL_CHARACTERS

TOPIC: Final = "orders"
TAG: Final = "created"

MAX_TOTAL_CENTS: Final = 10**15
"""Above that a total is a mistake, not an order."""


class UnreadableOrder(Exception):
    """The body is no order, and will not become one by being delivered again; says which field is wrong."""


_Text = Annotated[str, StringConstraints(min_length=1), NO_CONTROL_CHARACTERS]


class OrderCreated(BaseModel):
    """An order that the order service has stored. Fields that this version does not know are ignored: the sender may be newer."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    order_id: Annotated[_Text, StringConstraints(max_length=36)]
    customer: Annotated[_Text, StringConstraints(max_length=100)]
    total_cents: int = Field(ge=0, le=MAX_TOTAL_CENTS)
    currency: Annotated[str, StringConstraints(pattern="^[A-Z]{3}$")]
    created_at_ms: int


def read_order(body: bytes) -> OrderCreated:
    """The order in a message's body. Raises UnreadableOrder."""
    try:
        return OrderCreated.model_validate_json(body)
    except ValidationError as error:
        wrong = [f"{'.'.join(str(part) for part in found['loc']) or 'body'}: {found['msg']}" for found in error.errors()]
        raise UnreadableOrder("; ".join(wrong)) from None
