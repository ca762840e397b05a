"""The bits of a pull's sysFlag (RocketMQ's PullSysFlag)."""

from typing import Final

COMMIT_OFFSET: Final = 0x1
"""The pull carries the group's offset."""
SUSPEND: Final = 0x2
"""The broker may hold the pull until a message comes."""
SUBSCRIPTION: Final = 0x4
"""The pull carries the subscription; otherwise that of the group's last heartbeat counts."""
