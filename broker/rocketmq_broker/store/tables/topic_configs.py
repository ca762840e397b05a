"""The table of topics with their numbers of queues and permissions, in topics.json (RocketMQ's TopicConfigManager)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rocketmq_broker.message import topics
from rocketmq_broker.message.configs import TopicConfig
from rocketmq_broker.store.files import FileSystem
from rocketmq_broker.store.tables.config_table import ConfigTable


class TopicConfigs(ConfigTable[TopicConfig]):
    """The table of topics. `persist` writes changes to the file."""

    def __init__(self, config_directory: Path, files: FileSystem | None = None) -> None:
        """Creates an empty table. Call `load` to read the file."""
        super().__init__(
            config_directory / "topics.json",
            "topicConfigTable",
            files,
            name_of=lambda config: config.topic_name,
            from_json=_topic,
        )

    def add_lost(self, queues: Mapping[bytes, Sequence[int]], now_ms: int) -> list[str]:
        """Adds settings for topics that have queues but no settings, because the file was lost. Returns the topics' names.

        `queues` contains the queue ids of each topic.
        """
        lost = [(name.decode(), max(queue_ids) + 1) for name, queue_ids in queues.items()]
        lost = [(name, count) for name, count in lost if name not in self._table and not topics.is_system_topic(name)]
        for name, count in lost:
            self.put(TopicConfig(name, read_queue_nums=count, write_queue_nums=count), now_ms)
        return [name for name, _ in lost]


def _topic(name: str, value: dict[str, Any]) -> TopicConfig:
    """Parses a topic. Missing members get their defaults."""
    named = {**value, "topicName": value.get("topicName") or name}
    if attributes := named.pop("attributes", None):
        named["attributes"] = {str(key): str(text) for key, text in sorted(attributes.items())}
    return msgspec.convert(named, TopicConfig, strict=False)
