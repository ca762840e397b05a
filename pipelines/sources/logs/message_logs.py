"""Where the messages of one broker are read: in its store's files, or from the broker itself (`pulled_log`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from pyspark.sql import DataFrame

from pipelines.sources.logs.consumer_offsets import read_consumer_offsets
from pipelines.sources.logs.log_records import read_records
from pipelines.sources.reading import Reading
from rocketmq_commitlog.commit_log import first_record, segments, split_log

MOST_SMALL_LOG_BYTES: Final = 64 * 1024 * 1024


class MessageLog(Protocol):
    """The messages of one broker. All methods raise UnreadableStore."""

    def check(self) -> None:
        """Returns if it can be read."""

    def is_small(self) -> bool:
        """Whether one process reads it in a few seconds."""

    def records(self, reading: Reading) -> DataFrame:
        """One row for each record, with log_records.COLUMNS; Spark may raise when it is used."""

    def consumer_offsets(self, consumer_group: str, topic: str) -> Mapping[int, int] | None:
        """The group's next queue offset in each queue of the topic; None if nobody knows."""

    def begins_ms(self, topic: str) -> int:
        """From when on the messages of this topic are complete: 0 if none has expired."""


@dataclass(frozen=True, slots=True)
class StoreLog:
    """The commit log in a store directory."""

    store: Path

    def check(self) -> None:
        """See MessageLog."""
        segments(self.store)

    def is_small(self) -> bool:
        """See MessageLog."""
        return sum(part.end - part.start for part in split_log(self.store)) <= MOST_SMALL_LOG_BYTES

    def records(self, reading: Reading) -> DataFrame:
        """See MessageLog."""
        return read_records(reading, self.store)

    def consumer_offsets(self, consumer_group: str, topic: str) -> Mapping[int, int] | None:
        """See MessageLog."""
        return read_consumer_offsets(self.store, consumer_group, topic)

    def begins_ms(self, topic: str) -> int:
        """See MessageLog."""
        oldest = first_record(self.store)
        return oldest.store_timestamp if oldest is not None and oldest.commit_log_offset > 0 else 0
