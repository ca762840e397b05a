from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rocketmq_broker.message.inner_message import InnerMessage
from rocketmq_broker.message.record import decode_record, host_bytes
from rocketmq_broker.store import Appended, MessageStore, StoreConfig, StoreUnwritable

HOST = host_bytes("127.0.0.1", 10911)
NOW = 1_700_000_000_000

Open = Callable[..., MessageStore]


def small_config(root: Path, **settings: Any) -> StoreConfig:
    """Returns a configuration with files so small that a few messages fill them."""
    sizes = {"commit_log_segment_size": 1024, "consume_queue_units_per_file": 8, "index_slots": 16, "index_entries": 64}
    return StoreConfig(root=root, store_host=HOST, **{**sizes, **settings})


def append(store: MessageStore, body: bytes = b"body", **fields: Any) -> Appended:
    defaults: dict[str, Any] = {
        "topic": b"orders",
        "queue_id": 0,
        "properties": b"",
        "flag": 0,
        "sys_flag": 0,
        "born_timestamp": NOW,
        "born_host": HOST,
    }
    how = {name: fields.pop(name) for name in ("was_accepted", "may_use_reserve") if name in fields}
    store_timestamp = fields.pop("store_timestamp", NOW)
    return store.append(InnerMessage(body=body, **{**defaults, **fields}), store_timestamp, **how)


def send(store: MessageStore, *bodies: bytes, **fields: Any) -> list[Appended]:
    """Appends, writes and publishes messages. Returns their positions."""
    appended = [append(store, body, **fields) for body in bodies]
    store.publish(store.write())
    return appended


def offsets(appended: Appended) -> tuple[int, int, int]:
    """Returns the fields of a position: commit log offset, queue offset and end."""
    return appended.commit_log_offset, appended.queue_offset, appended.end_position


def bodies(store: MessageStore, topic: bytes = b"orders", queue_id: int = 0, **limits: Any) -> list[bytes]:
    """Pulls until the end of a queue. Returns the bodies of all messages."""
    got: list[bytes] = []
    offset = store.min_offset(topic, queue_id)
    while offset < store.max_offset(topic, queue_id):
        pulled = store.pull(topic, queue_id, offset, limits.get("max_messages", 3), limits.get("max_bytes", 1 << 20))
        assert pulled.next_begin_offset > offset
        got += [decode_record(record).body for record in pulled.records]
        offset = pulled.next_begin_offset
    return got


def delete_topic(store: MessageStore, topic: bytes) -> None:
    """Deletes a topic as the broker does, and all its files."""
    for path in store.forget_topic(topic):
        if store._files.is_directory(path):
            if not store._files.list(path):
                store._files.remove_directory(path)
        elif store._files.size(path) is not None:
            store._files.unlink(path)
    with suppress(OSError, StoreUnwritable):
        store._sync_all()


def crash(store: MessageStore) -> None:
    """Ends a store as kill -9 does: writes nothing, and releases the locks."""
    store._open_files.close()
    store.lock.release()
    store._is_open = False


@pytest.fixture
def config(tmp_path: Path) -> StoreConfig:
    return small_config(tmp_path)


@pytest.fixture
def store(config: StoreConfig) -> Iterator[MessageStore]:
    opened = MessageStore.open(config)
    yield opened
    opened.close()


def delete_expired(store: MessageStore, now_ms: int, needed_from: int | None = None) -> list[Path]:
    """Deletes expired files as a store cleaner does. Returns the deleted paths."""
    paths = store.expiry.expire(now_ms, needed_from).paths
    if paths:
        paths += [path for trimmed in store.expiry.trim() for path in trimmed.paths]
    for path in paths:
        store.files.unlink(path)
    return paths
