"""The compensating message for an order that can never be credited. The order service cancels the order.

version 1   order_id, reason
"""

from typing import Final

from order_messages.body import MessageBody, ShortText

TOPIC: Final = "credit_refusals"
TAG: Final = "refused"
VERSION: Final = 1


class CreditRefused(MessageBody):
    """Reports that the credit service has closed an order without a credit. The order can never be credited later."""

    reason: ShortText
