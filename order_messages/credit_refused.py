"""The compensating message for an order that can never be credited. The order service cancels the order.

version 1   order_id, reason
"""

from typing import Annotated, Final

from pydantic import Field, StringConstraints

from order_messages.body import MessageBody, Text

TOPIC: Final = "credit_refusals"
TAG: Final = "refused"
VERSION: Final = 1


class CreditRefused(MessageBody):
    """Reports that the credit service has closed an order without a credit. The order can never be credited later."""

    version: int = Field(1, ge=1)
    reason: Annotated[Text, StringConstraints(max_length=200)]
