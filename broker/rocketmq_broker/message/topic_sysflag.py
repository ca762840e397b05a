"""The bits of a topic's sysFlag (RocketMQ's TopicSysFlag)."""

from typing import Final

UNIT: Final = 0x1
UNIT_SUBSCRIPTION: Final = 0x2
