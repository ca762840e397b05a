"""topics.json: the topics, how many queues they have and what is allowed with them (RocketMQ's TopicConfigManager)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntFlag
from pathlib import Path
from typing import Any

from broker.message import topics
from broker.store.config_file import ConfigFile, DataVersion
from broker.store.files import FileSystem


class Permission(IntFlag):
    """What clients may do with a topic (RocketMQ's PermName)."""

    INHERIT = 1
    WRITE = 2
    READ = 4


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """One topic."""

    topic_name: str
    read_queue_nums: int = 16
    write_queue_nums: int = 16
    perm: int = Permission.READ | Permission.WRITE
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: int = 0
    order: bool = False

    def as_json(self) -> dict[str, Any]:
        """As topics.json holds it."""
        return {
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
        """Reads what `as_json` writes; what is missing has its default."""
        return cls(
            topic_name=str(value.get("topicName") or name),
            read_queue_nums=int(value.get("readQueueNums", 16)),
            write_queue_nums=int(value.get("writeQueueNums", 16)),
            perm=int(value.get("perm", 6)),
            topic_filter_type=str(value.get("topicFilterType", "SINGLE_TAG")),
            topic_sys_flag=int(value.get("topicSysFlag", 0)),
            order=bool(value.get("order", False)),
        )


class TopicConfigs:
    """The table of topics; changes reach the file with `persist`."""

    def __init__(self, config_directory: Path, files: FileSystem | None = None) -> None:
        """Empty until `load`."""
        self.data_version = DataVersion()
        self._table: dict[str, TopicConfig] = {}
        self._file = ConfigFile(config_directory / "topics.json", files)

    def load(self) -> None:
        """Reads the file if there is one. Raises DamagedStore."""
        content = self._file.read()
        table = content.get("topicConfigTable") or {}
        self._table = {name: TopicConfig.from_json(name, value) for name, value in table.items()}
        self.data_version = DataVersion.from_json(content.get("dataVersion"))

    @property
    def complaint(self) -> str | None:
        """What was wrong with the file when it was loaded, in words."""
        return self._file.complaint

    def persist(self) -> None:
        """Writes the file; durable when it returns. Raises OSError."""
        table = {name: config.as_json() for name, config in self._table.items()}
        self._file.write({"dataVersion": self.data_version.as_json(), "topicConfigTable": table})

    def add_lost(self, queues: Mapping[bytes, Sequence[int]], now_ms: int) -> list[str]:
        """Adds the topics that have queues, given by their ids, but no settings: those of a lost file. Says which."""
        lost = [(name.decode(), max(queue_ids) + 1) for name, queue_ids in queues.items()]
        lost = [(name, count) for name, count in lost if name not in self._table and not topics.is_system_topic(name)]
        for name, count in lost:
            self.put(TopicConfig(name, read_queue_nums=count, write_queue_nums=count), now_ms)
        return [name for name, _ in lost]

    def get(self, topic: str) -> TopicConfig | None:
        """The topic's settings, or None if there is no such topic."""
        return self._table.get(topic)

    def put(self, config: TopicConfig, now_ms: int) -> None:
        """Adds or replaces a topic."""
        self._table[config.topic_name] = config
        self.data_version = self.data_version.next(now_ms)

    def remove(self, topic: str, now_ms: int) -> bool:
        """Removes a topic; whether there was one."""
        if self._table.pop(topic, None) is None:
            return False
        self.data_version = self.data_version.next(now_ms)
        return True

    def __contains__(self, topic: object) -> bool:
        return topic in self._table

    def __iter__(self) -> Iterator[TopicConfig]:
        return iter(list(self._table.values()))

    def __len__(self) -> int:
        return len(self._table)
