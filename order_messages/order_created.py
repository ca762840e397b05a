"""The message about a placed order. For an order that is paid later, it is sent only after the payment.

version 1   order_id, customer, total_cents, currency, created_at_ms
version 2   adds items, which the inventory service ships
"""

from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from order_messages.body import Currency, Customer, MessageBody, ShortText, TotalCents

TOPIC: Final = "orders"
TAG: Final = "created"
VERSION: Final = 2


class OrderedItem(BaseModel):
    """One line of the order."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    name: ShortText
    quantity: int = Field(ge=1, le=10**9)


class OrderCreated(MessageBody):
    """Reports that the order service has stored an order."""

    customer: Customer
    total_cents: TotalCents
    currency: Currency
    created_at_ms: int
    items: tuple[OrderedItem, ...] = ()
    """The lines of the order; empty in a message of version 1."""
