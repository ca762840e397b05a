"""The ports to the stock room and to the sender of shortages."""

from collections.abc import Sequence
from typing import Protocol

from inventory_service.domain.shipment import Shipment, ShipmentLine


class StockRoom(Protocol):
    """Stock and shipments. A retry is safe whether or not the first attempt was written.

    Methods raise DatabaseFailure, or its subclass DatabaseRefusal if the database answered but refuses the rows.
    """

    def ship(self, order_id: str, lines: Sequence[ShipmentLine]) -> Shipment:
        """Ships the order if there is enough stock, otherwise marks it SHORT. The change is durable on return.

        Repeating it has no effect.
        """

    def call_off(self, order_id: str) -> Shipment:
        """Returns a shipped order to stock, or prevents it from being shipped later. The change is durable on return."""


class ShortageNotReported(Exception):
    """The broker did not confirm the message, but may have stored it."""


class ShortageReporter(Protocol):
    """Reports to the order service that an order cannot be shipped."""

    def report(self, order_id: str, missing: str) -> None:
        """Sends a message that reports the shortage. The broker has stored it on return. Raises ShortageNotReported."""
