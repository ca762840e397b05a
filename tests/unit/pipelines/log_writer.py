"""Writes commit logs for tests record by record, as a broker does."""

import json
import struct
from collections import Counter
from pathlib import Path

from rocketmq_broker.message import properties, sysflag, topics
from rocketmq_broker.message.record import encode_blank, encode_record, host_bytes

HOST = host_bytes("127.0.0.1", 10911)
UNIT = struct.Struct(">qiq")
GROUP = "credit_service"


def order_body(order_id: str, placed_at_ms: int = 1, **said: object) -> bytes:
    """Returns version 1 of an order's message body, which has no items. `ShopDatabases.add_orders` adds the same order."""
    order = {"order_id": order_id, "customer": "ada", "total_cents": 1250, "currency": "EUR", "created_at_ms": placed_at_ms}
    return json.dumps({**order, **said}).encode()


class LogWriter:
    """A store directory whose commit log grows by one record per call. Each call returns the record's commit log offset.

    Consume queues grow with the log, unless `has_queues` is False.
    """

    def __init__(self, store: Path, *, segment_size: int = 1 << 20, begins_at: int = 0, has_queues: bool = True) -> None:
        self.store = store
        self.has_queues = has_queues
        self._segment_size = segment_size
        self._segment_offset = begins_at
        self._data = bytearray()
        self._latest_ms = 1
        self._queue_offsets: Counter[str] = Counter()
        (store / "commitlog").mkdir(parents=True)

    def half(
        self, key: str, *, at: int = 1, topic: str = "orders", unique_key: str | None = None, body: bytes = b"{}", born: int = 1
    ) -> int:
        named = {properties.REAL_TOPIC: topic, properties.REAL_QUEUE_ID: "0", properties.TRANSACTION_PREPARED: "true"}
        return self.append(topics.HALF_TOPIC, key, unique_key, at, body=body, more=named, born=born)

    def decide(self, *half_queue_offsets: int) -> int:
        body = ",".join(map(str, half_queue_offsets)).encode()
        return self.append(topics.OP_HALF_TOPIC, None, "", self._latest_ms, body=body, more={properties.TAGS: "d"})

    def decide_latest(self) -> int:
        """Decides the latest half message."""
        return self.decide(self._queue_offsets[topics.HALF_TOPIC] - 1)

    def deliver(
        self,
        key: str,
        *,
        half: int = 0,
        at: int = 1,
        topic: str = "orders",
        unique_key: str | None = None,
        body: bytes | None = None,
        born: int = 1,
    ) -> int:
        named = {properties.REAL_TOPIC: "orders"}
        body = order_body(key, at) if body is None else body
        sys_flag = sysflag.TRANSACTION_COMMIT_TYPE
        return self.append(topic, key, unique_key, at, sys_flag=sys_flag, half=half, body=body, born=born, more=named)

    def discard(self, key: str, *, at: int = 1) -> int:
        return self.append(topics.CHECK_MAX_TIME_TOPIC, key, None, at, more={properties.REAL_TOPIC: "orders"})

    def delay(self, key: str, *, at: int = 1) -> int:
        """Appends a message that the consumer group sent back and that waits for its delay."""
        return self._again(topics.SCHEDULE_TOPIC, key, at, real_topic=topics.retry_topic(GROUP))

    def retry(self, key: str, *, at: int = 1) -> int:
        """Appends a message to the group's retry topic."""
        return self._again(topics.retry_topic(GROUP), key, at)

    def bury(self, key: str, *, at: int = 1) -> int:
        """Appends a dead letter."""
        return self._again(topics.dead_letter_topic(GROUP), key, at)

    def _again(self, topic: str, key: str, at: int, *, real_topic: str = "orders") -> int:
        named = {properties.REAL_TOPIC: real_topic, properties.RETRY_TOPIC: "orders"}
        return self.append(topic, key, None, at, sys_flag=sysflag.TRANSACTION_COMMIT_TYPE, more=named)

    def consume(self, *, kept_back: int = 0) -> None:
        """Writes consumerOffset.json. The group has consumed everything but the last `kept_back` messages of `orders`."""
        ends = {topic: self._queue_offsets[topic] for topic in ("orders", topics.retry_topic(GROUP), "order_cancellations")}
        ends["orders"] -= kept_back
        config = self.store / "config"
        config.mkdir(exist_ok=True)
        table = {f"{topic}@{GROUP}": {"0": end} for topic, end in ends.items()}
        (config / "consumerOffset.json").write_text(json.dumps({"offsetTable": table}))

    def append(
        self,
        topic: str,
        key: str | None,
        unique_key: str | None,
        at: int,
        *,
        sys_flag: int = 0,
        half: int = 0,
        body: bytes = b"{}",
        more: dict[str, str] | None = None,
        born: int = 1,
    ) -> int:
        self._latest_ms = max(self._latest_ms, at)
        queue_offset = self._queue_offsets[topic]
        self._queue_offsets[topic] += 1
        unique = f"U-{key}" if unique_key is None else unique_key
        named = {properties.KEYS: key or "", properties.UNIQUE_KEY: unique, **(more or {})}
        encoded = properties.encode({name: value for name, value in named.items() if value})

        def record(offset: int) -> bytes:
            return encode_record(
                topic=topic.encode(),
                queue_id=0,
                queue_offset=queue_offset,
                commit_log_offset=offset,
                flag=0,
                sys_flag=sys_flag,
                born_timestamp=born,
                born_host=HOST,
                store_timestamp=at,
                store_host=HOST,
                reconsume_times=0,
                prepared_transaction_offset=half,
                body=body,
                properties=encoded,
            )

        if len(self._data) + len(record(0)) + 8 > self._segment_size:
            self._write(encode_blank(self._segment_size - len(self._data)))
            self._segment_offset += self._segment_size
            self._data = bytearray()
        offset = self._segment_offset + len(self._data)
        self._write(record(offset))
        if self.has_queues:
            self._put_unit(topic, offset, len(record(0)))
        return offset

    def _put_unit(self, topic: str, commit_log_offset: int, size: int) -> None:
        folder = self.store / "consumequeue" / topic / "0"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{0:020d}").open("ab") as file:
            file.write(UNIT.pack(commit_log_offset, size, 0))

    @property
    def end(self) -> int:
        """The offset of the next record, if the segment has room for it."""
        return self._segment_offset + len(self._data)

    def damage(self, commit_log_offset: int, data: bytes) -> None:
        """Overwrites bytes of the current segment."""
        position = commit_log_offset - self._segment_offset
        self._data[position : position + len(data)] = data
        self.save()

    def flip(self, commit_log_offset: int, part: bytes, behind: bytes = b"") -> None:
        """Flips one bit of the first byte of `part` that directly follows `behind`, in the record at this offset."""
        position = self._data.index(behind + part, commit_log_offset - self._segment_offset) + len(behind)
        self._data[position] ^= 1
        self.save()

    def save(self) -> None:
        """Rewrites the current segment with its planned length."""
        self._path.write_bytes(bytes(self._data).ljust(self._segment_size, b"\0"))

    def _write(self, data: bytes) -> None:
        if not self._path.exists():
            self.save()
        with self._path.open("r+b") as file:
            file.seek(len(self._data))
            file.write(data)
        self._data += data

    @property
    def _path(self) -> Path:
        return self.store / "commitlog" / f"{self._segment_offset:020d}"
