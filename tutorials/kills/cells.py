"""The moments at which processes are killed, and the processes that are killed at such a moment."""

from enum import Enum


class Moment(Enum):
    """A moment at which a process is halted. The docstring of each member names this process in brackets."""

    ASKED = "asked"
    """The order service has received the request and has sent nothing (order service)."""
    HALF = "half"
    """The broker has stored the half message, and the local transaction has not begun (order service)."""
    STORED = "stored"
    """The local transaction is committed, and COMMIT has not been sent (order service)."""
    DELIVERED = "delivered"
    """The message is delivered, and the credit is not stored (credit service)."""
    CREDITED = "credited"
    """The credit is stored, and the message is not acknowledged (credit service)."""


class Victim(Enum):
    """The processes that are killed and restarted five seconds later. DISK kills no process."""

    ORDER_SERVICE = "order-service"
    BROKER = "broker"
    CREDIT_SERVICE = "credit-service"
    EVERYTHING = "everything"
    """All three processes are killed with kill -9."""
    POWER = "power"
    """All three processes are killed, and data that the broker has not flushed to disk is lost."""
    DISK = "disk"
    """No process is killed. The broker's disk is full for a minute."""

    @property
    def has_order_service(self) -> bool:
        """True if the order service is killed."""
        return self in (Victim.ORDER_SERVICE, Victim.EVERYTHING, Victim.POWER)

    @property
    def has_broker(self) -> bool:
        """True if the broker is killed."""
        return self in (Victim.BROKER, Victim.EVERYTHING, Victim.POWER)

    @property
    def has_credit_service(self) -> bool:
        """True if the credit service is killed."""
        return self in (Victim.CREDIT_SERVICE, Victim.EVERYTHING, Victim.POWER)
