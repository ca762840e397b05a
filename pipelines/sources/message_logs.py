"""Where the messages of one broker are read: in its store's files, or from the broker itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from pyspark.sql import DataFrame

from broker.message import topics
from pipelines.sources.consumer_offsets import read_consumer_offsets
from pipelines.sources.log_records import COLUMNS, read_records
from pipelines.sources.pulled_log_source import PulledLogSource
from pipelines.sources.queue_ranges import consumer_offsets, decided_without_record, first_stored_ms, queue_ranges
from pipelines.sources.reading import Reading
from rocketmq_commitlog.commit_log import first_record, segments, split_log
from rocketmq_commitlog.record_columns import RecordKind

MOST_SMALL_LOG_BYTES: Final = 64 * 1024 * 1024
MOST_SMALL_MESSAGES: Final = 100_000
NOWHERE: Final = -1
"""The commit log offset of a record that stands for several that cannot be pulled."""

_TOLD_AT_ONCE: Final = 1000
_OF_TRANSACTIONS: Final = (topics.HALF_TOPIC, topics.OP_HALF_TOPIC)


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


@dataclass(frozen=True, slots=True)
class BrokerLog:
    """What a broker answers when its queues are pulled."""

    address: str
    """HOST:PORT"""

    def check(self) -> None:
        """See MessageLog."""
        queue_ranges(self.address)

    def is_small(self) -> bool:
        """See MessageLog."""
        return sum(part.end - part.first for part in queue_ranges(self.address)) <= MOST_SMALL_MESSAGES

    def records(self, reading: Reading) -> DataFrame:
        """See MessageLog."""
        pulled = reading.frame(PulledLogSource, {"brokerAddr": self.address}, COLUMNS)
        decided = decided_without_record(self.address)
        told = [",".join(map(str, decided[start : start + _TOLD_AT_ONCE])) for start in range(0, len(decided), _TOLD_AT_ONCE)]
        if not told:
            return pulled
        op_messages = reading.spark.createDataFrame(
            [(NOWHERE, RecordKind.OP.value, offsets) for offsets in told],
            "commit_log_offset bigint, kind string, decided_queue_offsets string",
        )
        return reading.together(pulled.unionByName(op_messages, allowMissingColumns=True))

    def consumer_offsets(self, consumer_group: str, topic: str) -> Mapping[int, int] | None:
        """See MessageLog."""
        return consumer_offsets(self.address, consumer_group, topic)

    def begins_ms(self, topic: str) -> int:
        """See MessageLog."""
        return first_stored_ms(self.address, (topic, *_OF_TRANSACTIONS))
