"""The table of consumer groups and their permissions, in subscriptionGroup.json (RocketMQ's SubscriptionGroupManager)."""

from pathlib import Path
from typing import Any

import msgspec

from rocketmq_broker.message.configs import SubscriptionGroupConfig
from rocketmq_broker.store.files import FileSystem
from rocketmq_broker.store.tables.config_table import ConfigTable


class SubscriptionGroups(ConfigTable[SubscriptionGroupConfig]):
    """The table of groups. `persist` writes changes to the file."""

    def __init__(self, config_directory: Path, files: FileSystem | None = None) -> None:
        """Creates an empty table. Call `load` to read the file."""
        super().__init__(
            config_directory / "subscriptionGroup.json",
            "subscriptionGroupTable",
            files,
            name_of=lambda config: config.group_name,
            from_json=_group,
        )


def _group(name: str, value: dict[str, Any]) -> SubscriptionGroupConfig:
    """Parses a group. Missing members get their defaults."""
    return msgspec.convert({**value, "groupName": value.get("groupName") or name}, SubscriptionGroupConfig, strict=False)
