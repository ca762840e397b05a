"""Which delayed messages a broker had delivered before it crashed: how far it had come it notes only now and then.

RocketMQ delivers those again that it delivered since it last noted its offsets. Here the index finds what became of them.
"""

from __future__ import annotations

from rocketmq_broker.message import properties
from rocketmq_broker.message.record import Record, decode_record
from rocketmq_broker.server.schedule.delay_levels import Place
from rocketmq_broker.store import MessageStore


class DeliveredBefore:
    """Asked of each message that is due; only those that were due before a crash cost a look into the index."""

    def __init__(self, store: MessageStore) -> None:
        """Knows from the store's recovery whether there was a crash, and when."""
        self._store = store
        self._crashed_ms = 0 if store.recovery.was_stopped_cleanly else store.recovery.last_store_timestamp

    def has(self, waiting: Record, place: Place, due_ms: int) -> bool:
        """Whether the message was delivered to its place. Without an index, or a unique id, nobody can tell: no."""
        if due_ms > self._crashed_ms:
            return False
        unique_id = waiting.get_property(properties.UNIQUE_KEY)
        if unique_id is None:
            return False
        found = self._store.query(place.topic, unique_id, begin_ms=waiting.store_timestamp)
        return any(_is_delivery(decode_record(data), waiting, place) for data in found.records)


def _is_delivery(record: Record, waiting: Record, place: Place) -> bool:
    # A message tried again keeps its unique id, and comes to its retry topic once for each time it was tried.
    return (
        record.commit_log_offset > waiting.commit_log_offset
        and record.queue_id == place.queue_id
        and record.reconsume_times == waiting.reconsume_times
        and record.born_timestamp == waiting.born_timestamp
        and record.body_crc == waiting.body_crc
    )
