"""The compensating message for an order that the stock cannot cover. The order service cancels the order.

version 1   order_id, missing
"""

from typing import Final

from order_messages.body import MessageBody, ShortText

TOPIC: Final = "order_shortages"
TAG: Final = "short"
VERSION: Final = 1


class StockShort(MessageBody):
    """Reports that the inventory service will never ship an order."""

    missing: ShortText
    """The name of the first item with too little in stock."""
