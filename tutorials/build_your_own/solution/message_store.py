"""Stages 2 to 5 and 11: stores messages and reads their records."""

import time
from collections.abc import Iterable
from pathlib import Path

from tutorials.build_your_own.solution import record
from tutorials.build_your_own.solution.commit_log import CommitLog
from tutorials.build_your_own.solution.consume_queue import ConsumeQueue, Unit, tags_code
from tutorials.build_your_own.solution.record import Message, Record


class MessageStore:
    """The commit log and the consume queues."""

    def __init__(self, root: Path, store_host: bytes, log_file_size: int) -> None:
        self.log = CommitLog(root / "commitlog", log_file_size)
        self.store_host = store_host
        self.topics: set[str] = set()
        self._root = root
        self._queues: dict[tuple[str, int], ConsumeQueue] = {}

    def recover(self) -> list[Record]:
        """Reads the commit log and rebuilds the consume queues. Returns all records of the log."""
        records = []
        for found, size in self.log.recover():
            self._dispatch(found, size)
            records.append(found)
        return records

    def append(self, *messages: Message) -> list[Record]:
        """Stores messages in one write, and flushes them to disk. Returns their records."""
        records, data = [], b""
        next_offsets: dict[tuple[str, int], int] = {}
        for message in messages:
            place = (message.topic, message.queue_id)
            queue_offset = next_offsets.get(place, self.max_offset(*place))
            next_offsets[place] = queue_offset + 1
            stored = Record(message, queue_offset, self.log.end + len(data), int(time.time() * 1000), self.store_host)
            data += record.encode(stored)
            records.append(stored)
        self.log.append(data)
        ends = [*(stored.commit_log_offset for stored in records[1:]), self.log.end]
        for stored, end in zip(records, ends, strict=True):
            self._dispatch(stored, end - stored.commit_log_offset)
        return records

    def max_offset(self, topic: str, queue_id: int) -> int:
        """Returns the queue offset that the next message of the queue will have."""
        return len(self.units(topic, queue_id))

    def units(self, topic: str, queue_id: int) -> list[Unit]:
        """Returns the units of a queue in order of queue offset."""
        queue = self._queues.get((topic, queue_id))
        return queue.units if queue is not None else []

    def read(self, units: Iterable[Unit]) -> bytes:
        """Returns the concatenated records of the units."""
        return b"".join(self.log.read(unit.commit_log_offset, unit.size) for unit in units)

    def _dispatch(self, stored: Record, size: int) -> None:
        topic, queue_id = stored.message.topic, stored.message.queue_id
        self.topics |= {topic, stored.property("REAL_TOPIC") or topic}
        if (topic, queue_id) not in self._queues:
            self._queues[topic, queue_id] = ConsumeQueue(self._root / "consumequeue" / topic / str(queue_id))
        unit = Unit(stored.commit_log_offset, size, tags_code(stored.property("TAGS")))
        self._queues[topic, queue_id].append(unit)
