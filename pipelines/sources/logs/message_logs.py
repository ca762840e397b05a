"""The source of one broker's messages: its store's files, or the broker itself (`pulled_log`)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from pyspark.sql import DataFrame

from pipelines.sources.logs.consumer_offsets import read_consumer_offsets
from pipelines.sources.reading import Reading
from rocketmq_commitlog.commit_log import LogRange, LogRecord, first_record, regular_only, scan, segments, split_log
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
"""What the reconciliation reads of each record."""


class MessageLog(Protocol):
    """The messages of one broker. All methods raise UnreadableStore."""

    def check(self) -> None:
        """Checks that it can be read."""

    def is_small(self) -> bool:
        """Returns whether one process reads it in a few seconds."""

    def records(self, reading: Reading) -> DataFrame:
        """Returns one row for each record, with COLUMNS; Spark may raise when the rows are used."""

    def consumer_offsets(self, consumer_group: str, topic: str) -> Mapping[int, int] | None:
        """Returns the group's next queue offset in each queue of the topic; None if it is unknown."""

    def begins_ms(self, topic: str) -> int:
        """Returns the time since which this topic has all its messages: 0 if none has expired."""

    def lost_ends(self, progress: Mapping[str, Mapping[int, int] | None]) -> list[str]:
        """Returns the queues of which the group has consumed more than the log holds, each in words; none if that is unknown."""


@dataclass(frozen=True, slots=True)
class StoreLog:
    """The commit log in a store directory."""

    store: Path

    def check(self) -> None:
        """Checks that the store has segments."""
        segments(self.store)

    def is_small(self) -> bool:
        """Returns whether the log is short enough for one process."""
        left = MAX_SMALL_LOG_BYTES
        for part in split_log(self.store):
            length = part.end - part.start
            # A copied file has lost the hole behind its last record: it may be small nevertheless.
            left -= length if length <= left else _without_zeros(part)
            if left < 0:
                return False
        return True

    def records(self, reading: Reading) -> DataFrame:
        """Returns the records of the log."""
        return read_records(reading, self.store)

    def consumer_offsets(self, consumer_group: str, topic: str) -> Mapping[int, int] | None:
        """Returns the group's offsets in the store's file."""
        return read_consumer_offsets(self.store, consumer_group, topic)

    def begins_ms(self, topic: str) -> int:
        """Returns the first record's store time; 0 if the log still begins at offset 0."""
        oldest = first_record(self.store)
        return oldest.store_timestamp if oldest is not None and oldest.commit_log_offset > 0 else 0

    def lost_ends(self, progress: Mapping[str, Mapping[int, int] | None]) -> list[str]:
        """Returns the queues of which the group has consumed more than the log holds, each in words."""
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
        # Consume queues lie a little behind the log, or are missing: the records behind them count, too.
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
    """Returns the length of a range without the zeros at its end. Raises UnreadableStore."""
    try:
        with open(part.segment, "rb", opener=regular_only) as file:
            for begin in range(part.start + (part.end - part.start - 1) // _BLOCK * _BLOCK, part.start - 1, -_BLOCK):
                block = os.pread(file.fileno(), min(_BLOCK, part.end - begin), begin)
                if block.count(0) < len(block):
                    return begin + len(block.rstrip(b"\0")) - part.start
    except OSError as error:
        raise UnreadableStore(f"commit log segment {part.segment}: {error.strerror or error}") from None
    return 0


def read_records(reading: Reading, store: Path, from_offset: int = 0) -> DataFrame:
    """Returns each record of a store's commit log, starting at a commit log offset.

    Raises UnreadableStore, or Spark does when the DataFrame is used.
    """
    return reading.frame(CommitLogSource, options_of_store(store, from_offset), COLUMNS)


def options_of_store(store: Path, from_offset: int = 0) -> dict[str, str]:
    """Returns the options of CommitLogSource that read the store, starting at a commit log offset."""
    return {"store": str(store.absolute()), "fromOffset": str(from_offset)}
