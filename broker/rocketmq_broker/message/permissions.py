"""The permissions of brokers and topics (RocketMQ's PermName), and the bits of a topic's sysFlag."""

from typing import Final

READ: Final = 4
WRITE: Final = 2
INHERIT: Final = 1
READ_AND_WRITE: Final = READ | WRITE

UNIT: Final = 0x1
"""The bit of a topic's sysFlag that marks a topic as belonging to a unit (RocketMQ's TopicSysFlag)."""
UNIT_SUBSCRIPTION: Final = 0x2
"""The bit of a topic's sysFlag that marks a topic as subscribed to by a unit (RocketMQ's TopicSysFlag)."""


def is_readable(permission: int) -> bool:
    """Returns True if the permission allows clients to pull messages."""
    return permission & READ != 0


def is_writeable(permission: int) -> bool:
    """Returns True if the permission allows clients to send messages."""
    return permission & WRITE != 0


def is_inherited(permission: int) -> bool:
    """Returns True if the permission allows new topics to be created with this topic as the template."""
    return permission & INHERIT != 0
