"""The permission of a broker or a topic (RocketMQ's PermName), and the bits of a topic's sysFlag."""

from typing import Final

READ: Final = 4
WRITE: Final = 2
INHERIT: Final = 1
READ_AND_WRITE: Final = READ | WRITE

UNIT: Final = 0x1
"""A bit of a topic's sysFlag (RocketMQ's TopicSysFlag), as is the next."""
UNIT_SUBSCRIPTION: Final = 0x2


def is_readable(permission: int) -> bool:
    """Returns whether messages may be pulled."""
    return permission & READ != 0


def is_writeable(permission: int) -> bool:
    """Returns whether messages may be sent."""
    return permission & WRITE != 0


def is_inherited(permission: int) -> bool:
    """Returns whether new topics may be made on the model of this one."""
    return permission & INHERIT != 0
