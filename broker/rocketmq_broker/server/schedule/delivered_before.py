"""Finds delayed messages that the broker had delivered before a crash, but after it last saved its offsets.

RocketMQ delivers these messages again. Here the index finds their deliveries.
"""

from __future__ import annotations

from rocketmq_broker.message import properties
from rocketmq_broker.message.record import Record, decode_record
from rocketmq_broker.server.schedule.delay_levels import Place
from rocketmq_broker.store import MessageStore


class DeliveredBefore:
    """Checks each due message. Only those due before a crash cost a look into the index."""

    def __init__(self, store: MessageStore) -> None:
        """Takes from the store's recovery whether there was a crash, and when."""
        self._store = store
        self._crashed_ms = 0 if store.recovery.was_stopped_cleanly else store.recovery.last_store_timestamp

    def has(self, waiting: Record, place: Place, due_ms: int) -> bool:
        """Returns whether the message was delivered to its place; False without an index or a unique id."""
        if due_ms > self._crashed_ms:
            return False
        unique_id = waiting.get_property(properties.UNIQUE_KEY)
        if unique_id is None:
            return False
        found = self._store.query(place.topic, unique_id, begin_ms=waiting.store_timestamp)
        return any(_is_delivery(decode_record(data), waiting, place) for data in found.records)


def _is_delivery(record: Record, waiting: Record, place: Place) -> bool:
    # A retried message keeps its unique id, and enters its retry topic once for each attempt.
    return (
        record.commit_log_offset > waiting.commit_log_offset
        and record.queue_id == place.queue_id
        and record.reconsume_times == waiting.reconsume_times
        and record.born_timestamp == waiting.born_timestamp
        and record.body_crc == waiting.body_crc
    )
