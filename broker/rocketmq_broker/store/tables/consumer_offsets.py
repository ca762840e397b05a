"""The table of the consumer offsets of each group in each queue, in consumerOffset.json (RocketMQ's ConsumerOffsetManager)."""

from collections import Counter
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, Final

from rocketmq_broker.message.steps import finish
from rocketmq_broker.store.files import FileSystem
from rocketmq_broker.store.tables.config_file import ConfigFile

_SEPARATOR = "@"
_COPIED_AT_ONCE: Final = 1000


class ConsumerOffsets:
    """The table of offsets. `persist` writes changes to the file."""

    def __init__(self, config_directory: Path, files: FileSystem | None = None) -> None:
        """Creates an empty table. Call `load` to read the file."""
        self._table: dict[str, dict[int, int]] = {}
        self._topics: dict[str, dict[str, None]] = {}
        """Maps each group to the topics in which it has offsets."""
        self.count = 0
        """The number of offsets in the table."""
        self._counts: Counter[str] = Counter()
        """The number of offsets of each group."""
        self._is_changed = True
        self._file = ConfigFile(config_directory / "consumerOffset.json", files, members=frozenset({"offsetTable"}))

    def load(self) -> None:
        """Reads the file if it exists. Raises DamagedStore."""
        self._set_table(self._file.read(_parse))

    @property
    def complaint(self) -> str | None:
        """Returns a warning about the loaded file, or None if there is none."""
        return self._file.complaint

    @property
    def is_to_be_written(self) -> bool:
        """Returns whether the file must be written, because it lacks changes or was removed. Raises OSError."""
        return self._is_changed or self._file.is_missing

    def persist(self) -> None:
        """Writes the file durably. Raises OSError."""
        finish(self.writer())()

    def writer(self) -> Generator[None, None, Callable[[], None]]:
        """Copies the table in steps, and returns a function that writes the copy to the file. The function raises OSError.

        The function may run on any thread, but not twice at the same time. The table may change between two steps. This copy may
        lack such a change, but the next copy contains it.
        """
        self._is_changed = False
        table: dict[str, dict[int, int]] = {}
        for number, name in enumerate(list(self._table)):
            table[name] = dict(sorted(self._table.get(name, {}).items()))
            if number % _COPIED_AT_ONCE == _COPIED_AT_ONCE - 1:
                yield
        content = {"offsetTable": table}

        def write() -> None:
            try:
                self._file.write(content)
            except OSError:
                self._is_changed = True
                raise

        return write

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Sets the group's offset in the queue."""
        queues = self._table.get(topic + _SEPARATOR + group)
        if queues is None:
            queues = self._table[topic + _SEPARATOR + group] = {}
            self._topics.setdefault(group, {})[topic] = None
        known = queues.get(queue_id)
        if known != offset:
            self._is_changed = True
            queues[queue_id] = offset
            if known is None:
                self._add(group, 1)

    def get(self, group: str, topic: str, queue_id: int) -> int | None:
        """Returns the group's offset in the queue, or None if there is none."""
        return self._table.get(topic + _SEPARATOR + group, {}).get(queue_id)

    def of_topic(self, group: str, topic: str) -> dict[int, int]:
        """Returns the group's offset in each queue of the topic."""
        return dict(self._table.get(topic + _SEPARATOR + group, {}))

    @property
    def group_count(self) -> int:
        """Returns the number of groups with offsets."""
        return len(self._topics)

    def has_offsets(self, group: str) -> bool:
        """Returns whether the group has offsets in any queue."""
        return group in self._topics

    def count_of(self, group: str) -> int:
        """Returns the number of the group's offsets, in all queues."""
        return self._counts[group]

    def topics_of(self, group: str) -> set[str]:
        """Returns the topics in which the group has offsets (whichTopicByConsumer)."""
        return set(self._topics.get(group, ()))

    def groups_of(self, topic: str) -> set[str]:
        """Returns the groups that have offsets in the topic (whichGroupByTopic)."""
        return {group for group, names in self._topics.items() if topic in names}

    def clone(self, source_group: str, target_group: str, topic: str) -> None:
        """Copies a group's offsets in a topic to another group (cloneOffset)."""
        if offsets := self.of_topic(source_group, topic):
            self._is_changed = True
            name = topic + _SEPARATOR + target_group
            self._add(target_group, len(offsets) - len(self._table.get(name, ())))
            self._table[name] = offsets
            self._topics.setdefault(target_group, {})[topic] = None

    def remove_topic(self, topic: str) -> None:
        """Removes the offsets of all groups in a topic."""
        for group in self.groups_of(topic):
            self._remove(group, topic)

    def remove_group(self, group: str) -> None:
        """Removes the offsets of a group in all topics (removeOffset)."""
        for topic in self.topics_of(group):
            self._remove(group, topic)

    def entries(self) -> Iterator[tuple[str, dict[int, int]]]:
        """Yields each topic@group with its offsets, which the caller must not modify. The table may change between two steps."""
        # Copies only the names. The garbage collector would scan all of 200,000 pairs created at once.
        return ((name, self._table[name]) for name in list(self._table) if name in self._table)

    def as_json(self) -> dict[str, dict[int, int]]:
        """Returns the offsets, keyed by topic@group, as in the file (for GET_ALL_CONSUMER_OFFSET)."""
        return {name: dict(queues) for name, queues in self._table.items()}

    def _remove(self, group: str, topic: str) -> None:
        self._is_changed = True
        self._add(group, -len(self._table.pop(topic + _SEPARATOR + group, ())))
        names = self._topics[group]
        del names[topic]
        if not names:
            del self._topics[group], self._counts[group]

    def _add(self, group: str, offsets: int) -> None:
        self.count += offsets
        self._counts[group] += offsets

    def _set_table(self, table: dict[str, dict[int, int]]) -> None:
        self._table, self._topics = table, {}
        self.count, self._counts = 0, Counter()
        for name, queues in table.items():
            topic, _, group = name.partition(_SEPARATOR)
            self._topics.setdefault(group, {})[topic] = None
            self._add(group, len(queues))


def _parse(content: dict[str, Any]) -> dict[str, dict[int, int]]:
    table = content.get("offsetTable") or {}
    return {name: {int(queue_id): int(offset) for queue_id, offset in queues.items()} for name, queues in table.items()}
