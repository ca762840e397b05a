"""The message about a cancelled order whose creation was published. It may arrive before the message about the creation.

version 1   order_id, customer, total_cents, currency, cancelled_at_ms, reason
"""

from typing import Final

from order_messages.body import Currency, Customer, MessageBody, ShortText, TotalCents

TOPIC: Final = "order_cancellations"
TAG: Final = "cancelled"
VERSION: Final = 1


class OrderCancelled(MessageBody):
    """Reports that the order service has cancelled an order. A cancellation is final."""

    customer: Customer
    total_cents: TotalCents
    """The order's total, from which its credit was calculated."""
    currency: Currency
    cancelled_at_ms: int
    reason: ShortText
