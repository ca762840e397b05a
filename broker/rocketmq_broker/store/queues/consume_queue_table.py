"""All consume queues, by topic and queue id (RocketMQ's consumeQueueTable)."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from rocketmq_broker.message import topics
from rocketmq_broker.message.errors import IllegalMessage
from rocketmq_broker.store.errors import DamagedStore
from rocketmq_broker.store.files import OpenFiles
from rocketmq_broker.store.log.segments import Segments
from rocketmq_broker.store.queues.consume_queue import ConsumeQueue, Unit
from rocketmq_broker.store.queues.dispatch import DispatchRequest
from rocketmq_broker.store.queues.topic_folders import TopicFolders
from rocketmq_broker.store.queues.unit_files import UNIT_SIZE, Unsynced
from rocketmq_broker.store.results import Trimmed
from rocketmq_broker.store.settings import StoreConfig


class ConsumeQueueTable:
    """The table of queues. A queue is created with its first message."""

    def __init__(self, config: StoreConfig, open_files: OpenFiles, folders: TopicFolders) -> None:
        """Creates an empty table. Call `load` to find the queues on disk."""
        self._directory = config.consume_queue_directory
        self._segment_size = config.consume_queue_units_per_file * UNIT_SIZE
        self._open = open_files
        self._files = open_files.files
        self.folders = folders
        """Decides which topics can have queues."""
        self._table: dict[tuple[bytes, int], ConsumeQueue] = {}
        self._touched: dict[tuple[bytes, int], ConsumeQueue] = {}
        """The queues that may have units to write."""
        self.may_repair_on_disk = True
        """Whether the table may write repaired units to the files."""

    def load(self) -> None:
        """Finds the queues on disk. Skips invalid topics and queue ids. Each queue is empty until it is recovered."""
        for topic in self._files.list(self._directory):
            if not topics.is_topic(topic):
                continue
            for queue_id in self._files.list(self._directory / topic):
                if queue_id.isascii() and queue_id.isdigit():
                    self._create(topic.encode(), int(queue_id))

    def find(self, topic: bytes, queue_id: int) -> ConsumeQueue | None:
        """Returns the queue, or None if it does not exist."""
        return self._table.get((topic, queue_id))

    def find_or_create(self, topic: bytes, queue_id: int) -> ConsumeQueue:
        """Returns the queue. Creates it if it does not exist. The topic's name must be valid.

        Raises DamagedStore if this file system cannot hold the topic's folder, because the store comes from another file system.
        """
        if (queue := self._table.get((topic, queue_id))) is not None:
            return queue
        try:
            self.folders.check(topic.decode(), (name.decode() for name, _ in self._table))
        except IllegalMessage as error:
            raise DamagedStore(str(error)) from None
        return self._create(topic, queue_id)

    def put(self, request: DispatchRequest) -> ConsumeQueue:
        """Adds a record's unit to its queue."""
        queue = self._table.get((request.topic, request.queue_id)) or self._create(request.topic, request.queue_id)
        queue.put(request.queue_offset, request.commit_log_offset, request.size, request.tags_code)
        self._touched[(request.topic, request.queue_id)] = queue
        return queue

    def put_run(self, key: tuple[bytes, int], requests: Sequence[DispatchRequest]) -> ConsumeQueue:
        """Adds the units of one queue's records, in the order of the commit log."""
        queue = self._table.get(key) or self._create(*key)
        queue.put_run(requests)
        self._touched[key] = queue
        return queue

    def repair(self, queue: ConsumeQueue, queue_offset: int, unit: Unit) -> None:
        """Replaces a damaged unit with the correct one, which the next checkpoint makes durable."""
        queue.repair(queue_offset, unit, may_write=self.may_repair_on_disk)
        self._touched[(queue.topic, queue.queue_id)] = queue

    def write(self) -> Iterator[Unsynced]:
        """Writes waiting units to the files, one queue at each step. Yields the files and directories to sync.

        Units may be added between two steps. Raises OSError.
        """
        for key, queue in list(self._touched.items()):
            queue.write()
            del self._touched[key]
            yield queue.take_unsynced()

    def max_offsets(self) -> dict[tuple[bytes, int], int]:
        """Returns the offset after the last unit of each queue, keyed by topic and queue id."""
        return {key: queue.max_offset for key, queue in self._table.items()}

    def names(self) -> dict[bytes, list[int]]:
        """Returns the queue ids of each topic."""
        names: dict[bytes, list[int]] = {}
        for topic, queue_id in sorted(self._table):
            names.setdefault(topic, []).append(queue_id)
        return names

    def forget_topic(self, topic: bytes) -> list[Path]:
        """Drops the queues of a topic. Returns the files and folders to delete, in deletion order."""
        paths = []
        for key in [key for key in self._table if key[0] == topic]:
            self._touched.pop(key, None)
            paths += self._table.pop(key).forget()
        return [*paths, self._directory / topic.decode()] if paths else []

    def trim(self, commit_log_min_offset: int) -> Iterator[Trimmed]:
        """Drops the units of expired messages, one queue at each step.

        Messages may be added between two steps, but no topic may be deleted.
        """
        for queue in self:
            before = queue.min_offset
            paths = queue.forget_expired(commit_log_min_offset)
            yield Trimmed(paths, max(queue.min_offset - before, 0))

    def __iter__(self) -> Iterator[ConsumeQueue]:
        return iter(list(self._table.values()))

    def __len__(self) -> int:
        return len(self._table)

    def _create(self, topic: bytes, queue_id: int) -> ConsumeQueue:
        directory = self._directory / topic.decode() / str(queue_id)
        queue = self._table[(topic, queue_id)] = ConsumeQueue(
            topic, queue_id, Segments(directory, self._segment_size, self._open)
        )
        return queue
