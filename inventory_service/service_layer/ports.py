"""The ports to the stock room and to whoever tells of shortages."""

from collections.abc import Sequence
from typing import Protocol

from inventory_service.domain.shipment import Shipment, ShipmentLine


class StockRoom(Protocol):
    """Stock and shipments. To try again is right whether or not it was written.

    Each method raises DatabaseFailure, of which a DatabaseRefusal says that the database answered, and will not take the rows.
    """

    def ship(self, order_id: str, lines: Sequence[ShipmentLine]) -> Shipment:
        """Ships the order if there is enough; durable on return. An order that was here before is left as it is."""

    def call_off(self, order_id: str) -> Shipment:
        """Takes a shipped order back into stock, or keeps one that comes later from being shipped; durable on return."""


class ShortageNotTold(Exception):
    """The broker did not take the message. It may be stored all the same."""


class ShortageTeller(Protocol):
    """Tells the order service that an order cannot be shipped."""

    def tell(self, order_id: str, missing: str) -> None:
        """The message is stored on return. Raises ShortageNotTold."""
