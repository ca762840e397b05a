"""subscriptionGroup.json: the consumer groups and what is allowed to them (RocketMQ's SubscriptionGroupManager)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broker.store.config_file import ConfigFile, DataVersion
from broker.store.files import FileSystem


@dataclass(frozen=True, slots=True)
class SubscriptionGroupConfig:
    """One consumer group."""

    group_name: str
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    retry_queue_nums: int = 1
    retry_max_times: int = 16
    broker_id: int = 0
    which_broker_when_consume_slowly: int = 1
    notify_consumer_ids_changed_enable: bool = True

    def as_json(self) -> dict[str, Any]:
        """As subscriptionGroup.json holds it."""
        return {
            "brokerId": self.broker_id,
            "consumeBroadcastEnable": self.consume_broadcast_enable,
            "consumeEnable": self.consume_enable,
            "consumeFromMinEnable": self.consume_from_min_enable,
            "groupName": self.group_name,
            "notifyConsumerIdsChangedEnable": self.notify_consumer_ids_changed_enable,
            "retryMaxTimes": self.retry_max_times,
            "retryQueueNums": self.retry_queue_nums,
            "whichBrokerWhenConsumeSlowly": self.which_broker_when_consume_slowly,
        }

    @classmethod
    def from_json(cls, name: str, value: dict[str, Any]) -> SubscriptionGroupConfig:
        """Reads what `as_json` writes; what is missing has its default."""
        return cls(
            group_name=str(value.get("groupName") or name),
            consume_enable=bool(value.get("consumeEnable", True)),
            consume_from_min_enable=bool(value.get("consumeFromMinEnable", True)),
            consume_broadcast_enable=bool(value.get("consumeBroadcastEnable", True)),
            retry_queue_nums=int(value.get("retryQueueNums", 1)),
            retry_max_times=int(value.get("retryMaxTimes", 16)),
            broker_id=int(value.get("brokerId", 0)),
            which_broker_when_consume_slowly=int(value.get("whichBrokerWhenConsumeSlowly", 1)),
            notify_consumer_ids_changed_enable=bool(value.get("notifyConsumerIdsChangedEnable", True)),
        )


class SubscriptionGroups:
    """The table of groups; changes reach the file with `persist`."""

    def __init__(self, config_directory: Path, files: FileSystem | None = None) -> None:
        """Empty until `load`."""
        self.data_version = DataVersion()
        self._table: dict[str, SubscriptionGroupConfig] = {}
        self._file = ConfigFile(config_directory / "subscriptionGroup.json", files)

    def load(self) -> None:
        """Reads the file if there is one. Raises DamagedStore."""
        content = self._file.read()
        table = content.get("subscriptionGroupTable") or {}
        self._table = {name: SubscriptionGroupConfig.from_json(name, value) for name, value in table.items()}
        self.data_version = DataVersion.from_json(content.get("dataVersion"))

    @property
    def complaint(self) -> str | None:
        """What was wrong with the file when it was loaded, in words."""
        return self._file.complaint

    def persist(self) -> None:
        """Writes the file; durable when it returns. Raises OSError."""
        table = {name: config.as_json() for name, config in self._table.items()}
        self._file.write({"dataVersion": self.data_version.as_json(), "subscriptionGroupTable": table})

    def get(self, group: str) -> SubscriptionGroupConfig | None:
        """The group's settings, or None if there is no such group."""
        return self._table.get(group)

    def put(self, config: SubscriptionGroupConfig, now_ms: int) -> None:
        """Adds or replaces a group."""
        self._table[config.group_name] = config
        self.data_version = self.data_version.next(now_ms)

    def remove(self, group: str, now_ms: int) -> bool:
        """Removes a group; whether there was one."""
        if self._table.pop(group, None) is None:
            return False
        self.data_version = self.data_version.next(now_ms)
        return True

    def __contains__(self, group: object) -> bool:
        return group in self._table

    def __iter__(self) -> Iterator[SubscriptionGroupConfig]:
        return iter(list(self._table.values()))

    def __len__(self) -> int:
        return len(self._table)
