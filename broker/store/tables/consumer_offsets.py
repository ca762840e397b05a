"""consumerOffset.json: how far each group has come in each queue (RocketMQ's ConsumerOffsetManager)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from broker.store.files import FileSystem
from broker.store.tables.config_file import ConfigFile

_SEPARATOR = "@"


class ConsumerOffsets:
    """The table of offsets; changes reach the file with `persist`."""

    def __init__(self, config_directory: Path, files: FileSystem | None = None) -> None:
        """Empty until `load`."""
        self._table: dict[str, dict[int, int]] = {}
        self._is_changed = True
        self._file = ConfigFile(config_directory / "consumerOffset.json", files, members=frozenset({"offsetTable"}))

    def load(self) -> None:
        """Reads the file if there is one. Raises DamagedStore."""
        self._table = self._file.read(_parse)

    @property
    def complaint(self) -> str | None:
        """What was wrong with the file when it was loaded, in words."""
        return self._file.complaint

    @property
    def is_to_be_written(self) -> bool:
        """Whether the file lacks something, or somebody removed it. Raises OSError."""
        return self._is_changed or self._file.is_missing

    def persist(self) -> None:
        """Writes the file; durable when it returns. Raises OSError."""
        self.writer()()

    def writer(self) -> Callable[[], None]:
        """What writes the table as it is now, later and on any thread, one at a time. It raises OSError."""
        content = {"offsetTable": {name: dict(sorted(queues.items())) for name, queues in self._table.items()}}
        self._is_changed = False

        def write() -> None:
            try:
                self._file.write(content)
            except OSError:
                self._is_changed = True
                raise

        return write

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """The group goes on at this queue offset."""
        queues = self._table.setdefault(topic + _SEPARATOR + group, {})
        if queues.get(queue_id) != offset:
            self._is_changed = True
            queues[queue_id] = offset

    def advance(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Commits the offset unless the group is further already."""
        if offset > self._table.get(topic + _SEPARATOR + group, {}).get(queue_id, -1):
            self.commit(group, topic, queue_id, offset)

    def get(self, group: str, topic: str, queue_id: int) -> int | None:
        """Where the group goes on, or None if it never said."""
        return self._table.get(topic + _SEPARATOR + group, {}).get(queue_id)

    def of_topic(self, group: str, topic: str) -> dict[int, int]:
        """The group's offset in each queue of the topic."""
        return dict(self._table.get(topic + _SEPARATOR + group, {}))

    def topics_of(self, group: str) -> set[str]:
        """The topics in which the group has offsets (whichTopicByConsumer)."""
        return {name.partition(_SEPARATOR)[0] for name in self._table if name.partition(_SEPARATOR)[2] == group}

    def groups_of(self, topic: str) -> set[str]:
        """The groups that have offsets in the topic (whichGroupByTopic)."""
        return {name.partition(_SEPARATOR)[2] for name in self._table if name.partition(_SEPARATOR)[0] == topic}

    def clone(self, source_group: str, target_group: str, topic: str) -> None:
        """Gives another group the same offsets in a topic (cloneOffset)."""
        if offsets := self.of_topic(source_group, topic):
            self._is_changed = True
            self._table[topic + _SEPARATOR + target_group] = offsets

    def remove_topic(self, topic: str) -> None:
        """Forgets the offsets of all groups in a topic."""
        self._is_changed = True
        self._table = {name: queues for name, queues in self._table.items() if name.partition(_SEPARATOR)[0] != topic}

    def remove_group(self, group: str) -> None:
        """Forgets the offsets of a group in all topics (removeOffset)."""
        self._is_changed = True
        self._table = {name: queues for name, queues in self._table.items() if name.partition(_SEPARATOR)[2] != group}

    def as_json(self) -> dict[str, dict[int, int]]:
        """The table as the file holds it, by topic@group (for GET_ALL_CONSUMER_OFFSET)."""
        return {name: dict(queues) for name, queues in self._table.items()}


def _parse(content: dict[str, Any]) -> dict[str, dict[int, int]]:
    table = content.get("offsetTable") or {}
    return {name: {int(queue_id): int(offset) for queue_id, offset in queues.items()} for name, queues in table.items()}
