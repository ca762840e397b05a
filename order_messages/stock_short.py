"""The compensating message for an order that the stock cannot cover. The order service cancels the order.

version 1   order_id, missing
"""

from typing import Annotated, Final

from pydantic import Field, StringConstraints

from order_messages.body import MessageBody, Text

TOPIC: Final = "order_shortages"
TAG: Final = "short"
VERSION: Final = 1


class StockShort(MessageBody):
    """Reports that the inventory service will never ship an order."""

    version: int = Field(1, ge=1)
    missing: Annotated[Text, StringConstraints(max_length=200)]
    """The name of the first item with too little in stock."""
