"""Prometheus counters of shipments, labelled with the state after each message."""

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter

from inventory_service.domain.shipment import Shipment, ShipmentLine
from inventory_service.service_layer.ports import StockRoom


class CountedStockRoom:
    """Wraps a `StockRoom` and counts the states that it returns."""

    def __init__(self, stock_room: StockRoom, registry: CollectorRegistry) -> None:
        """Wraps `stock_room`, and registers the counter in `registry`."""
        self._stock_room = stock_room
        self._shipments = Counter(
            "inventory_messages", "Messages, by the state of the shipment after them.", ["message", "state"], registry=registry
        )

    def ship(self, order_id: str, lines: Sequence[ShipmentLine]) -> Shipment:
        """Ships the order and counts its state."""
        return self._counted("created", self._stock_room.ship(order_id, lines))

    def call_off(self, order_id: str) -> Shipment:
        """Cancels the order's shipment and counts its state."""
        return self._counted("cancelled", self._stock_room.call_off(order_id))

    def _counted(self, message: str, shipment: Shipment) -> Shipment:
        self._shipments.labels(message, shipment.state.value).inc()
        return shipment
