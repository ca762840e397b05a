"""What a broker's or a topic's permission allows (RocketMQ's PermName)."""

from typing import Final

READ: Final = 4
WRITE: Final = 2
INHERIT: Final = 1
READ_AND_WRITE: Final = READ | WRITE


def is_readable(permission: int) -> bool:
    """Whether messages may be pulled."""
    return permission & READ != 0


def is_writeable(permission: int) -> bool:
    """Whether messages may be sent."""
    return permission & WRITE != 0


def is_inherited(permission: int) -> bool:
    """Whether new topics may be made after the model of this one."""
    return permission & INHERIT != 0
