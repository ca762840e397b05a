"""The ports to the stock room and to the sender of shortages."""

from collections.abc import Sequence
from typing import Protocol

from inventory_service.domain.shipment import Shipment, ShipmentLine


class StockRoom(Protocol):
    """Stock and shipments. A retry is right whether or not the first try was written.

    Each method raises DatabaseFailure; its subclass DatabaseRefusal says that the database answered, but refuses the rows.
    """

    def ship(self, order_id: str, lines: Sequence[ShipmentLine]) -> Shipment:
        """Ships the order if there is enough; durable on return. Leaves an order with an earlier message alone."""

    def call_off(self, order_id: str) -> Shipment:
        """Returns a shipped order to stock, or prevents a later shipment; durable on return."""


class ShortageNotTold(Exception):
    """The broker did not confirm the message, but may have stored it."""


class ShortageTeller(Protocol):
    """Tells the order service that an order cannot be shipped."""

    def tell(self, order_id: str, missing: str) -> None:
        """Sends the message; stored on return. Raises ShortageNotTold."""
