import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rocketmq_broker.message.inner_message import InnerMessage
from rocketmq_broker.message.record import decode_record, host_bytes
from rocketmq_broker.store import Appended, MessageStore, StoreConfig, StoreUnwritable
from tests.unit.store.crash_disk import CrashDisk

HOST = host_bytes("127.0.0.1", 10911)
NOW = 1_700_000_000_000


def small_config(root: Path, **settings: Any) -> StoreConfig:
    """Returns a configuration with files so small that a few messages fill them."""
    sizes = {"commit_log_segment_size": 1024, "consume_queue_units_per_file": 8, "index_slots": 16, "index_entries": 64}
    return StoreConfig(root=root, **{"store_host": HOST, **sizes, **settings})


_opened: list[MessageStore] = []


def open_store(config: StoreConfig) -> MessageStore:
    """Opens a store, which is closed at the end of the test."""
    _opened.append(MessageStore.open(config))
    return _opened[-1]


@pytest.fixture(autouse=True)
def _opened_stores_are_closed() -> Iterator[None]:
    yield
    while _opened:
        _opened.pop().close()


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


def said(store: MessageStore) -> str:
    """Returns what recovery did."""
    return "; ".join(store.recovery.actions)


def patch_unit(config: StoreConfig, queue_offset: int, commit_log_offset: int, size: int) -> None:
    """Overwrites a unit of the consume queue of orders, queue 0."""
    path = config.consume_queue_directory / "orders" / "0" / f"{queue_offset // 8 * 160:020d}"
    with path.open("r+b") as file:
        file.seek(queue_offset % 8 * 20)
        file.write(struct.pack(">qiq", commit_log_offset, size, 0))


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
def store(config: StoreConfig) -> MessageStore:
    return open_store(config)


@pytest.fixture
def disk() -> CrashDisk:
    return CrashDisk()


def delete_expired(store: MessageStore, now_ms: int, needed_from: int | None = None) -> list[Path]:
    """Deletes expired files as a store cleaner does. Returns the deleted paths."""
    paths = store.expiry.expire(now_ms, needed_from).paths
    if paths:
        paths += [path for trimmed in store.expiry.trim() for path in trimmed.paths]
    for path in paths:
        store.files.unlink(path)
    return paths
