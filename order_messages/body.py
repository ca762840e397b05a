"""The base class of all message bodies, and the types of their fields."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from order_messages.states import MAX_CUSTOMER_LENGTH, MAX_ORDER_ID_LENGTH, MAX_TOTAL_CENTS
from service_runtime.text import NO_CONTROL_CHARACTERS


class UnreadableBody(Exception):
    """Raised if a body does not match its topic's schema. The error message names the invalid field.

    A redelivery of the message would fail again.
    """


Text = Annotated[str, StringConstraints(min_length=1), NO_CONTROL_CHARACTERS]
ShortText = Annotated[Text, StringConstraints(max_length=200)]
OrderId = Annotated[Text, StringConstraints(max_length=MAX_ORDER_ID_LENGTH)]
Customer = Annotated[Text, StringConstraints(max_length=MAX_CUSTOMER_LENGTH)]
TotalCents = Annotated[int, Field(ge=0, le=MAX_TOTAL_CENTS)]
Currency = Annotated[str, StringConstraints(pattern="^[A-Z]{3}$")]


class MessageBody(BaseModel):
    """The body of a message. Unknown fields are ignored, because the sender may be newer."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    order_id: OrderId
    version: int = Field(1, ge=1)

    def encode(self) -> bytes:
        """Encodes the body as JSON in UTF-8."""
        return self.model_dump_json().encode()

    @classmethod
    def read(cls, body: bytes) -> Self:
        """Decodes and validates a body. Raises UnreadableBody."""
        try:
            return cls.model_validate_json(body)
        except ValidationError as error:
            wrong = [f"{'.'.join(str(part) for part in found['loc']) or 'body'}: {found['msg']}" for found in error.errors()]
            raise UnreadableBody("; ".join(wrong)) from None
