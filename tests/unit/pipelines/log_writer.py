"""Writes commit logs for tests, record by record, as a broker does."""

from pathlib import Path

from broker.message import properties, sysflag, topics
from broker.message.record import encode_blank, encode_record, host_bytes

HOST = host_bytes("127.0.0.1", 10911)


class LogWriter:
    """A store directory whose commit log grows by one record a call; each call answers the record's commit log offset."""

    def __init__(self, store: Path, *, segment_size: int = 1 << 20, begins_at: int = 0) -> None:
        self.store = store
        self._segment_size = segment_size
        self._segment_offset = begins_at
        self._data = bytearray()
        self._half_offset = 0
        (store / "commitlog").mkdir(parents=True)

    def half(self, key: str, *, at: int = 1, topic: str = "orders", unique_key: str | None = None) -> int:
        self._half_offset += 1
        named = {properties.REAL_TOPIC: topic, properties.REAL_QUEUE_ID: "0", properties.TRANSACTION_PREPARED: "true"}
        return self.append(topics.HALF_TOPIC, key, unique_key, at, queue_offset=self._half_offset - 1, more=named)

    def decide(self, *half_queue_offsets: int) -> int:
        body = ",".join(map(str, half_queue_offsets)).encode()
        return self.append(topics.OP_HALF_TOPIC, None, "", 1, body=body, more={properties.TAGS: "d"})

    def deliver(self, key: str, *, half: int = 0, at: int = 1, topic: str = "orders", unique_key: str | None = None) -> int:
        return self.append(topic, key, unique_key, at, sys_flag=sysflag.TRANSACTION_COMMIT, half=half)

    def discard(self, key: str, *, at: int = 1) -> int:
        return self.append(topics.CHECK_MAX_TIME_TOPIC, key, None, at, more={properties.REAL_TOPIC: "orders"})

    def append(
        self,
        topic: str,
        key: str | None,
        unique_key: str | None,
        at: int,
        *,
        queue_offset: int = 0,
        sys_flag: int = 0,
        half: int = 0,
        body: bytes = b"{}",
        more: dict[str, str] | None = None,
    ) -> int:
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
                born_timestamp=at,
                born_host=HOST,
                store_timestamp=at,
                store_host=HOST,
                reconsume_times=0,
                prepared_transaction_offset=half,
                body=body,
                properties=encoded,
            )

        if len(self._data) + len(record(0)) + 8 > self._segment_size:
            self._data += encode_blank(self._segment_size - len(self._data))
            self.save()
            self._segment_offset += self._segment_size
            self._data = bytearray()
        offset = self._segment_offset + len(self._data)
        self._data += record(offset)
        self.save()
        return offset

    def damage(self, commit_log_offset: int, data: bytes) -> None:
        """Overwrites bytes of the current segment."""
        position = commit_log_offset - self._segment_offset
        self._data[position : position + len(data)] = data
        self.save()

    def save(self) -> None:
        path = self.store / "commitlog" / f"{self._segment_offset:020d}"
        path.write_bytes(bytes(self._data).ljust(self._segment_size, b"\0"))
