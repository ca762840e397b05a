"""The source of one broker's messages: its store's files, or the broker itself (`pulled_log`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from pyspark.sql import DataFrame

from pipelines.sources.logs.consumer_offsets import read_consumer_offsets
from pipelines.sources.reading import Reading
from rocketmq_commitlog.commit_log import first_record, segments, split_log
from rocketmq_commitlog.source import CommitLogSource

MOST_SMALL_LOG_BYTES: Final = 64 * 1024 * 1024
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


@dataclass(frozen=True, slots=True)
class StoreLog:
    """The commit log in a store directory."""

    store: Path

    def check(self) -> None:
        """Checks that the store has segments."""
        segments(self.store)

    def is_small(self) -> bool:
        """Returns whether the log is short enough for one process."""
        return sum(part.end - part.start for part in split_log(self.store)) <= MOST_SMALL_LOG_BYTES

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


def read_records(reading: Reading, store: Path, from_offset: int = 0) -> DataFrame:
    """Returns each record of a store's commit log, starting at a commit log offset.

    Raises UnreadableStore, or Spark does when the DataFrame is used.
    """
    return reading.frame(CommitLogSource, options_of_store(store, from_offset), COLUMNS)


def options_of_store(store: Path, from_offset: int = 0) -> dict[str, str]:
    """Returns the options of CommitLogSource that read the store, starting at a commit log offset."""
    return {"store": str(store.absolute()), "fromOffset": str(from_offset)}
