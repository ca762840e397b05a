"""The bits of a pull's sysFlag (RocketMQ's PullSysFlag)."""

from typing import Final

COMMIT_OFFSET: Final = 0x1
"""The pull says how far the group has come."""
SUSPEND: Final = 0x2
"""The broker may hold the pull back until there is a message."""
SUBSCRIPTION: Final = 0x4
"""The pull says what it wants; without this the broker asks the group's last heartbeat."""
