"""The errors of pops and of what follows them."""


class PopError(Exception):
    """Base of this room's errors."""


class IllegalHandle(PopError):
    """A receipt handle that no pop of this broker gave."""


class HandleExpired(PopError):
    """A receipt handle whose invisible time is over, or that another one replaced: the message was given to another consumer."""


class TooManyPops(PopError):
    """So many pops wait already that no other can (RocketMQ's POLLING_FULL)."""
