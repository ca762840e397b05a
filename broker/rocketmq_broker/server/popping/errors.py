"""The errors of pops, acknowledgements and changes of the invisible time."""


class PopError(Exception):
    """Base class of this package's errors."""


class IllegalHandle(PopError):
    """Raised if a receipt handle is malformed, or was issued by another broker."""


class HandleExpired(PopError):
    """Raised if a receipt handle is no longer valid: its invisible time has ended, or a newer handle has replaced it."""


class TooManyPops(PopError):
    """Raised if the maximum number of waiting pops or of unacknowledged messages is reached (RocketMQ's POLLING_FULL)."""
