"""The bits of a pull request's sysFlag (RocketMQ's PullSysFlag)."""

from typing import Final

COMMIT_OFFSET: Final = 0x1
"""The request commits the group's offset."""
SUSPEND: Final = 0x2
"""The broker may hold the request until a message arrives."""
SUBSCRIPTION: Final = 0x4
"""The request contains the subscription. Otherwise the broker uses the one of the group's last heartbeat."""
