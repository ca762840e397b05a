"""Defines the cells of the table. A cell combines a moment while an order is placed with the processes killed then."""

from enum import Enum


class Moment(Enum):
    """A moment at which a process is halted. The process is named in brackets."""

    ASKED = "asked"
    """The request has arrived, and nothing has been sent (order service)."""
    HALF = "half"
    """The broker has stored the half message; the local transaction has not begun (order service)."""
    STORED = "stored"
    """The local commit is done; COMMIT is not sent (order service)."""
    DELIVERED = "delivered"
    """The message is delivered; the credit is not stored (credit service)."""
    CREDITED = "credited"
    """The credit is stored; the message is not acknowledged (credit service)."""


class Victim(Enum):
    """The processes that are killed, and restarted five seconds later. DISK kills none."""

    ORDER_SERVICE = "order-service"
    BROKER = "broker"
    CREDIT_SERVICE = "credit-service"
    EVERYTHING = "everything"
    """All three processes, with kill -9."""
    POWER = "power"
    """All three processes, and the broker's data that was not flushed."""
    DISK = "disk"
    """Nothing is killed: the broker's disk is full for a minute."""

    @property
    def has_order_service(self) -> bool:
        """True if the order service dies."""
        return self in (Victim.ORDER_SERVICE, Victim.EVERYTHING, Victim.POWER)

    @property
    def has_broker(self) -> bool:
        """True if the broker dies."""
        return self in (Victim.BROKER, Victim.EVERYTHING, Victim.POWER)

    @property
    def has_credit_service(self) -> bool:
        """True if the credit service dies."""
        return self in (Victim.CREDIT_SERVICE, Victim.EVERYTHING, Victim.POWER)
