"""topics.json: the topics with their numbers of queues and permissions (RocketMQ's TopicConfigManager)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rocketmq_broker.message import permissions, topics
from rocketmq_broker.store.files import FileSystem
from rocketmq_broker.store.tables.config_table import ConfigTable


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """The settings of one topic."""

    topic_name: str
    read_queue_nums: int = 16
    write_queue_nums: int = 16
    perm: int = permissions.READ_AND_WRITE
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: int = 0
    order: bool = False
    attributes: tuple[tuple[str, str], ...] = ()
    """RocketMQ 5's attributes: names and values, such as `("message.type", "FIFO")`."""

    def as_json(self) -> dict[str, Any]:
        """Returns the settings for topics.json. Attributes come first, as in RocketMQ 5; 4.9.7 ignores them."""
        return {
            **({"attributes": dict(self.attributes)} if self.attributes else {}),
            "order": self.order,
            "perm": int(self.perm),
            "readQueueNums": self.read_queue_nums,
            "topicFilterType": self.topic_filter_type,
            "topicName": self.topic_name,
            "topicSysFlag": self.topic_sys_flag,
            "writeQueueNums": self.write_queue_nums,
        }

    @classmethod
    def from_json(cls, name: str, value: dict[str, Any]) -> TopicConfig:
        """Reads the result of `as_json`; a missing member has its default."""
        return cls(
            topic_name=str(value.get("topicName") or name),
            read_queue_nums=int(value.get("readQueueNums", 16)),
            write_queue_nums=int(value.get("writeQueueNums", 16)),
            perm=int(value.get("perm", 6)),
            topic_filter_type=str(value.get("topicFilterType", "SINGLE_TAG")),
            topic_sys_flag=int(value.get("topicSysFlag", 0)),
            order=bool(value.get("order", False)),
            attributes=tuple((str(key), str(text)) for key, text in sorted((value.get("attributes") or {}).items())),
        )


class TopicConfigs(ConfigTable[TopicConfig]):
    """The table of topics; changes reach the file with `persist`."""

    def __init__(self, config_directory: Path, files: FileSystem | None = None) -> None:
        """Begins empty; `load` reads the file."""
        super().__init__(
            config_directory / "topics.json",
            "topicConfigTable",
            files,
            name_of=lambda config: config.topic_name,
            from_json=TopicConfig.from_json,
        )

    def add_lost(self, queues: Mapping[bytes, Sequence[int]], now_ms: int) -> list[str]:
        """Adds the topics that have queues, given by their ids, but no settings: those of a lost file. Returns their names."""
        lost = [(name.decode(), max(queue_ids) + 1) for name, queue_ids in queues.items()]
        lost = [(name, count) for name, count in lost if name not in self._table and not topics.is_system_topic(name)]
        for name, count in lost:
            self.put(TopicConfig(name, read_queue_nums=count, write_queue_nums=count), now_ms)
        return [name for name, _ in lost]
