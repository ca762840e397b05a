"""Reads the messages of a broker by pulling them. Only this module needs the client, for `--broker`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame

from pipelines.sources.logs.message_logs import COLUMNS
from pipelines.sources.logs.pulled_log_source import PulledLogSource
from pipelines.sources.logs.queue_ranges import consumer_offsets, decided_without_record, first_stored_ms, queue_ranges
from pipelines.sources.reading import Reading
from rocketmq_broker.message import topics
from rocketmq_commitlog.record_columns import RecordKind

MAX_SMALL_MESSAGES: Final = 100_000
NOWHERE: Final = -1
"""The commit log offset of a row for several records that cannot be pulled."""

_PER_RECORD: Final = 1000
_OF_TRANSACTIONS: Final = (topics.HALF_TOPIC, topics.OP_HALF_TOPIC)


@dataclass(frozen=True, slots=True)
class BrokerLog:
    """The messages in the queues of a broker."""

    address: str
    """The address of the broker, HOST:PORT."""

    def check(self) -> None:
        """Raises UnreadableStore if the broker does not list its queues."""
        queue_ranges(self.address)

    def is_small(self) -> bool:
        """Returns True if one process can pull all messages."""
        return sum(part.end - part.first for part in queue_ranges(self.address)) <= MAX_SMALL_MESSAGES

    def records(self, reading: Reading) -> DataFrame:
        """Returns the pulled records, and generated op messages for decisions whose records cannot be pulled."""
        pulled = reading.frame(PulledLogSource, {"brokerAddr": self.address}, COLUMNS)
        decided = decided_without_record(self.address)
        groups = [",".join(map(str, decided[start : start + _PER_RECORD])) for start in range(0, len(decided), _PER_RECORD)]
        if not groups:
            return pulled
        op_messages = reading.spark.createDataFrame(
            [(NOWHERE, RecordKind.OP.value, offsets) for offsets in groups],
            "commit_log_offset bigint, kind string, decided_queue_offsets string",
        )
        return reading.together(pulled.unionByName(op_messages, allowMissingColumns=True))

    def consumer_offsets(self, consumer_group: str, topic: str) -> Mapping[int, int] | None:
        """Returns the group's offsets at the broker."""
        return consumer_offsets(self.address, consumer_group, topic)

    def lost_ends(self, progress: Mapping[str, Mapping[int, int] | None]) -> list[str]:
        """Returns an empty list, because a broker does not accept offsets beyond the end of a queue."""
        return []

    def begins_ms(self, topic: str) -> int:
        """Returns the time from which the broker has all messages of the topic and all half messages.

        The time is in milliseconds since the epoch.
        """
        return first_stored_ms(self.address, (topic, *_OF_TRANSACTIONS))
