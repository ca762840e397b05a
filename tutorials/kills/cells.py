"""The cells of the table: a moment in the life of an order, and a victim to kill then."""

from enum import Enum


class Moment(Enum):
    """A moment at which an order's life stops. The process in brackets waits there."""

    ASKED = "asked"
    """The customer's request has come; nothing is sent (order service)."""
    HALF = "half"
    """The broker has stored the half message; the local transaction has not begun (order service)."""
    STORED = "stored"
    """The local commit is done; COMMIT is not sent (order service)."""
    DELIVERED = "delivered"
    """The message is delivered; the credit is not stored (credit service)."""
    CREDITED = "credited"
    """The credit is stored; the message is not acknowledged (credit service)."""


class Victim(Enum):
    """The victim: it is killed, and started again five seconds later."""

    ORDER_SERVICE = "order-service"
    BROKER = "broker"
    CREDIT_SERVICE = "credit-service"
    EVERYTHING = "everything"
    """All three, by kill -9."""
    POWER = "power"
    """All three processes, and the broker's unsynced data."""
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
