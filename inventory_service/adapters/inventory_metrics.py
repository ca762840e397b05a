"""Counts processed messages for Prometheus, by the state of the shipment after each."""

from prometheus_client import CollectorRegistry, Counter

from inventory_service.adapters.stock_room import Applied
from inventory_service.domain.shipment import Instruction, Shipment


def message_counter(registry: CollectorRegistry | None) -> Applied:
    """Returns the function that counts a message, and registers its counter in `registry` if there is one."""
    messages = Counter(
        "inventory_messages", "Messages, by the state of the shipment after them.", ["message", "state"], registry=registry
    )

    def count(instruction: Instruction, shipment: Shipment) -> None:
        messages.labels("cancelled" if instruction.lines is None else "created", shipment.state.value).inc()

    return count
