"""subscriptionGroup.json: the consumer groups and their permissions (RocketMQ's SubscriptionGroupManager)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rocketmq_broker.store.files import FileSystem
from rocketmq_broker.store.tables.config_table import ConfigTable


@dataclass(frozen=True, slots=True)
class SubscriptionGroupConfig:
    """The settings of one consumer group."""

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
        """Returns the settings for subscriptionGroup.json."""
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
        """Reads the result of `as_json`; a missing member has its default."""
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


class SubscriptionGroups(ConfigTable[SubscriptionGroupConfig]):
    """The table of groups; changes reach the file with `persist`."""

    def __init__(self, config_directory: Path, files: FileSystem | None = None) -> None:
        """Begins empty; `load` reads the file."""
        super().__init__(
            config_directory / "subscriptionGroup.json",
            "subscriptionGroupTable",
            files,
            name_of=lambda config: config.group_name,
            from_json=SubscriptionGroupConfig.from_json,
        )
