"""The bits of a pull request's sysFlag (RocketMQ's PullSysFlag)."""

from typing import Final

COMMIT_OFFSET: Final = 0x1
"""Set if the request also commits the group's offset."""
SUSPEND: Final = 0x2
"""Set if the broker may delay its response until a message arrives."""
SUBSCRIPTION: Final = 0x4
"""Set if the request contains the subscription. Otherwise the broker uses the subscription of the group's last heartbeat."""
