"""The interface of a broker's messages, and its implementation for the files of a store.

The implementation that pulls messages is in `pulled_log`.
"""

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from pyspark.sql import DataFrame

from pipelines.sources.logs.consumer_offsets import read_consumer_offsets
from pipelines.sources.reading import Reading
from rocketmq_broker.platform.files import open_regular
from rocketmq_commitlog.commit_log import LogRange, LogRecord, first_record, scan, segments, split_log
from rocketmq_commitlog.errors import UnreadableStore
from rocketmq_commitlog.queue_units import known_end, queue_ends
from rocketmq_commitlog.source import CommitLogSource

MAX_SMALL_LOG_BYTES: Final = 64 * 1024 * 1024
_BLOCK: Final = 1024 * 1024
COLUMNS: Final = {
    "commit_log_offset": "bigint",
    "size": "bigint",
    "kind": "string",
    "topic": "string",
    "queue_id": "int",
    "queue_offset": "bigint",
    "stored_at_ms": "bigint",
    "born_at_ms": "bigint",
    "unique_key": "string",
    "keys": "string",
    "real_topic": "string",
    "half_commit_log_offset": "bigint",
    "decided_queue_offsets": "string",
    "body": "binary",
}
"""The columns of a record that the reconciliation reads."""


class MessageLog(Protocol):
    """The messages of one broker. All methods raise UnreadableStore."""

    def check(self) -> None:
        """Raises UnreadableStore if the messages cannot be read."""

    def is_small(self) -> bool:
        """Returns True if one process can read the messages in a few seconds."""

    def records(self, reading: Reading) -> DataFrame:
        """Returns one row with COLUMNS for each record. Spark may raise errors when the rows are used."""

    def consumer_offsets(self, consumer_group: str, topic: str) -> Mapping[int, int] | None:
        """Returns the group's next offset in each queue of the topic, or None if it is unknown."""

    def begins_ms(self, topic: str) -> int:
        """Returns the time, in milliseconds since the epoch, from which the broker has all messages of the topic.

        Returns 0 if no message has expired.
        """

    def lost_ends(self, progress: Mapping[str, Mapping[int, int] | None]) -> list[str]:
        """Returns a line for each queue whose consumed offset is after the log's end; empty if the end is unknown."""


@dataclass(frozen=True, slots=True)
class StoreLog:
    """The commit log in a store directory."""

    store: Path

    def check(self) -> None:
        """Raises UnreadableStore if the store has no segments."""
        segments(self.store)

    def is_small(self) -> bool:
        """Returns True if one process can read the log."""
        left = MAX_SMALL_LOG_BYTES
        for part in split_log(self.store):
            length = part.end - part.start
            # A segment that was copied as a non-sparse file may end with many zeros.
            left -= length if length <= left else _without_zeros(part)
            if left < 0:
                return False
        return True

    def records(self, reading: Reading) -> DataFrame:
        """Returns the records of the log."""
        return read_records(reading, self.store)

    def consumer_offsets(self, consumer_group: str, topic: str) -> Mapping[int, int] | None:
        """Returns the group's offsets from the store's file."""
        return read_consumer_offsets(self.store, consumer_group, topic)

    def begins_ms(self, topic: str) -> int:
        """Returns the first record's store time in milliseconds, or 0 if the log begins at offset 0."""
        oldest = first_record(self.store)
        return oldest.store_timestamp if oldest is not None and oldest.commit_log_offset > 0 else 0

    def lost_ends(self, progress: Mapping[str, Mapping[int, int] | None]) -> list[str]:
        """Returns a line for each queue whose consumed offset is after the log's end."""
        if not any(offsets for offsets in progress.values()) or any(self.begins_ms(topic) for topic in progress):
            return []
        ends = {topic: queue_ends(self.store, topic) for topic in progress}
        behind = [
            topic
            for topic, offsets in progress.items()
            if any((ends[topic] or {}).get(q, 0) < n for q, n in (offsets or {}).items())
        ]
        if not behind or not (self.is_small() or all(ends[topic] is not None for topic in behind)):
            return []
        # Consume queues lag behind the log, or are missing, so the later records are read too.
        known = 0 if any(ends[topic] is None for topic in behind) else known_end(self.store)
        last = Counter[tuple[str, int]]({(topic, q): end for topic in behind for q, end in (ends[topic] or {}).items()})
        for part in split_log(self.store, from_offset=known):
            for record in scan(part):
                if isinstance(record, LogRecord):
                    place = record.topic.decode(errors="replace"), record.queue_id
                    last[place] = max(last[place], record.queue_offset + 1)
        return [
            f"{topic}, queue {queue_id}: {consumed:,} consumed, {last[topic, queue_id]:,} in the log"
            for topic in behind
            for queue_id, consumed in sorted((progress[topic] or {}).items())
            if consumed > last[topic, queue_id]
        ]


def _without_zeros(part: LogRange) -> int:
    """Returns the length of a range without trailing zeros. Raises UnreadableStore."""
    try:
        with open(part.segment, "rb", opener=open_regular) as file:
            for begin in range(part.start + (part.end - part.start - 1) // _BLOCK * _BLOCK, part.start - 1, -_BLOCK):
                block = os.pread(file.fileno(), min(_BLOCK, part.end - begin), begin)
                if block.count(0) < len(block):
                    return begin + len(block.rstrip(b"\0")) - part.start
    except OSError as error:
        raise UnreadableStore(f"commit log segment {part.segment}: {error.strerror or error}") from None
    return 0


def read_records(reading: Reading, store: Path, from_offset: int = 0) -> DataFrame:
    """Returns the records of a store's commit log, starting at a commit log offset.

    Raises UnreadableStore. Spark may also raise it later.
    """
    return reading.frame(CommitLogSource, options_of_store(store, from_offset), COLUMNS)


def options_of_store(store: Path, from_offset: int = 0) -> dict[str, str]:
    """Returns the options of CommitLogSource for the store, starting at a commit log offset."""
    return {"store": str(store.absolute()), "fromOffset": str(from_offset)}
