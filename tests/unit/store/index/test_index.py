import errno
import shutil
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from rocketmq_broker.message.record import decode_record
from rocketmq_broker.message.tags import java_hash_code
from rocketmq_broker.store import MessageStore, StoreConfig
from rocketmq_broker.store.files import OpenFiles, OsFileSystem
from rocketmq_broker.store.index.index import _file_name, _key_hash
from rocketmq_broker.store.index.index_file import IndexFile
from rocketmq_broker.store.queues.dispatch import DispatchRequest
from tests.unit.store.conftest import NOW, append, crash, open_store, send, small_config


def send_with_keys(store: MessageStore, count: int, *, first: int = 0) -> None:
    for number in range(first, first + count):
        send(store, b"%d" % number, properties=b"KEYS\x01k%d" % number, store_timestamp=NOW + number * 1000)


def found(store: MessageStore, key: str, begin_ms: int = 0, end_ms: int = NOW * 2, limit: int = 32) -> list[bytes]:
    return [decode_record(record).body for record in store.query(b"orders", key, limit, begin_ms, end_ms).records]


@pytest.mark.parametrize("key", ["", "a", "k1", "7F000001ABCD0000000000000000001F", "é" * 16, "été", "x" * 700, "\U0001f600"])
@pytest.mark.parametrize("topic", ["orders", "%RETRY%a_group"])
def test_the_hash_is_javas_of_topic_and_key(topic: str, key: str) -> None:
    code = abs(java_hash_code(f"{topic}#{key}"))
    assert _key_hash(topic.encode(), key.encode()) == (code if code < 1 << 31 else 0)


def test_a_hash_that_java_cannot_make_positive_counts_as_0() -> None:
    text = "polygenelubricants"
    assert java_hash_code(text) == -(1 << 31)
    # The topic takes the first part, so the hash of "polygenelubricants" cannot be had; its absolute value can.
    assert all(0 <= _key_hash(b"t", b"%d" % number) < 1 << 31 for number in range(1000))


def test_what_is_remembered_of_messages_does_not_grow_with_their_keys_and_tags(tmp_path: Path) -> None:
    sizes = {"index_slots": 1000, "index_entries": 100_000, "commit_log_segment_size": 1 << 24}
    store = MessageStore.open(small_config(tmp_path, **sizes))

    def send_long(number: int) -> None:
        keys = b" ".join(b"%d%d" % (number, key) for key in range(500))
        send(store, b"x", properties=b"KEYS\x01%b\x02TAGS\x01%b" % (keys, b"t" * (900 + number)))
        send(store, b"x", properties=b"KEYS\x01" + b"k" * (2000 + number))
        store.query(b"orders", "q" * (2000 + number), 1, 0, NOW)

    send_long(0)
    tracemalloc.start()
    for number in range(1, 20):
        send_long(number)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    store.close()
    assert grown < 500_000


def test_an_index_file_has_rocketmqs_layout(config: StoreConfig, store: MessageStore) -> None:
    places = [
        send(store, b"x", properties=b"UNIQ_KEY\x01u%d" % number, store_timestamp=NOW + number * 2000)[0] for number in range(3)
    ]
    store.close()
    (path,) = config.index_directory.iterdir()
    assert path.name == _file_name(NOW)
    content = path.read_bytes()
    assert len(content) == 40 + 16 * 4 + 64 * 20
    begin, end, begin_offset, end_offset, slot_count, count = struct.unpack(">qqqqii", content[:40])
    assert (begin, end, begin_offset, end_offset) == (NOW, NOW + 4000, places[0].commit_log_offset, places[2].commit_log_offset)
    assert count == 4
    slots = struct.unpack(">16i", content[40:104])
    assert slot_count == len([slot for slot in slots if slot])
    entries = [struct.unpack(">iqii", content[104 + number * 20 : 124 + number * 20]) for number in range(4)]
    assert entries[0] == (0, 0, 0, 0)
    hashes = [_key_hash(b"orders", b"u%d" % number) for number in range(3)]
    assert [(entry[0], entry[1], entry[2]) for entry in entries[1:]] == [
        (hashes[number], places[number].commit_log_offset, number * 2) for number in range(3)
    ]
    for number, key_hash in enumerate(hashes, start=1):
        assert slots[key_hash % 16] >= number


def test_a_full_file_is_followed_by_another(config: StoreConfig, store: MessageStore) -> None:
    for number in range(200):
        send(store, b"%d" % number, properties=b"KEYS\x01k%d" % number)
        if number % 50 == 49:
            store.flush()
    assert len(list(config.index_directory.iterdir())) == 4
    for _ in range(2):
        assert all(len(store.query(b"orders", f"k{number}", 32, 0, NOW * 2).records) == 1 for number in range(200))
        crash(store)
        store = open_store(config)


def test_keys_of_one_slot_are_told_apart(tmp_path: Path) -> None:
    config = small_config(tmp_path, index_slots=1)
    store = open_store(config)
    for number in range(40):
        send(store, b"%d" % number, properties=b"KEYS\x01k%d" % (number % 10))
    store.flush()
    assert [len(store.query(b"orders", f"k{number}", 32, 0, NOW * 2).records) for number in range(11)] == [4] * 10 + [0]
    assert len(store.query(b"orders", "k3", 2, 0, NOW * 2).records) == 2


def test_without_index_nothing_is_found_and_nothing_written(tmp_path: Path) -> None:
    config = small_config(tmp_path, is_index_enabled=False)
    store = open_store(config)
    send(store, b"x", properties=b"KEYS\x01k")
    store.close()
    assert not config.index_directory.exists()
    store = open_store(config)
    assert store.query(b"orders", "k", 32, 0, NOW * 2).records == []
    assert store.recovery.actions == []


@pytest.mark.parametrize("timestamp_ms", [-(1 << 62), -1, 1 << 62])
def test_a_file_that_begins_with_a_damaged_record_has_a_usable_name(timestamp_ms: int) -> None:
    assert len(_file_name(timestamp_ms)) == 17


def garble(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:36] + b"\x7f" * 68 + content[104:])


def shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    ("damage", "place"),
    [(garble, 0), (garble, 1), (garble, -1), (shorten, 0), (shorten, -1), (empty, 0), (empty, 1), (empty, -1), (Path.unlink, -1)],
)
def test_an_index_of_which_one_file_is_unusable_is_rebuilt(
    config: StoreConfig, store: MessageStore, damage: Callable[[Path], object], place: int
) -> None:
    send_with_keys(store, 150)
    store.close()
    damage(sorted(config.index_directory.iterdir())[place])
    again = open_store(config)
    assert [found(again, f"k{number}") for number in range(150)] == [[b"%d" % number] for number in range(150)]


@pytest.mark.parametrize(("slots", "entries"), [(16, 32), (16, 128), (8, 64), (32, 64), (8, 65)])
def test_an_index_made_with_other_sizes_is_rebuilt(config: StoreConfig, store: MessageStore, slots: int, entries: int) -> None:
    send_with_keys(store, 150)
    store.close()
    other = small_config(config.root, index_slots=slots, index_entries=entries)
    again = MessageStore.open(other)
    assert [found(again, f"k{number}") for number in range(150)] == [[b"%d" % number] for number in range(150)]
    again.close()
    assert {path.stat().st_size for path in config.index_directory.iterdir()} == {40 + slots * 4 + entries * 20}


@pytest.mark.parametrize("count_before", [1, 40])
def test_a_crash_that_kept_a_file_but_not_the_end_of_the_one_before_it_costs_no_entry(
    config: StoreConfig, store: MessageStore, count_before: int
) -> None:
    send_with_keys(store, 100)
    store.flush()
    crash(store)
    path = min(config.index_directory.iterdir())
    header = path.read_bytes()[:36]
    with path.open("r+b") as file:
        file.write(header + struct.pack(">i", count_before))
    again = open_store(config)
    assert [found(again, f"k{number}") for number in range(100)] == [[b"%d" % number] for number in range(100)]


def test_a_new_file_that_got_no_entries_before_a_crash_does_not_cost_the_index(config: StoreConfig, store: MessageStore) -> None:
    send_with_keys(store, 50)
    store.flush()
    crash(store)
    kept = min(config.index_directory.iterdir()).read_bytes()
    (config.index_directory / "20991231235959999").write_bytes(bytes(len(kept)))
    again = open_store(config)
    assert "index" not in "".join(again.recovery.actions)
    assert found(again, "k49") == [b"49"]
    assert len(list(config.index_directory.iterdir())) == 1


def test_the_first_message_of_a_store_is_found_after_a_crash_that_kept_an_index_without_entries(
    config: StoreConfig, store: MessageStore
) -> None:
    store.close()
    marks = {path: path.read_bytes() for path in config.root.iterdir() if path.is_file()}
    first = MessageStore.open(config)
    send_with_keys(first, 2)
    first.flush()
    crash(first)
    (index_file,) = config.index_directory.iterdir()
    index_file.write_bytes(bytes(index_file.stat().st_size))
    for path, content in marks.items():
        path.write_bytes(content)
    again = open_store(config)
    again.flush()
    assert [found(again, key) for key in ("k0", "k1")] == [[b"0"], [b"1"]]


def test_foreign_files_among_the_index_files_are_left_alone(config: StoreConfig, store: MessageStore) -> None:
    send_with_keys(store, 1)
    store.close()
    for name in ("README", "2023111422132000x", "20231114221320"):
        (config.index_directory / name).write_text("notes")
    again = MessageStore.open(config)
    assert found(again, "k0") == [b"0"]
    again.close()
    assert (config.index_directory / "README").read_text() == "notes"


def test_the_index_goes_with_its_commit_log(config: StoreConfig, store: MessageStore) -> None:
    send_with_keys(store, 1)
    store.close()
    shutil.rmtree(config.commit_log_directory)
    again = open_store(config)
    send(again, b"new", properties=b"KEYS\x01new")
    assert (found(again, "k0"), found(again, "new")) == ([], [b"new"])


def test_a_query_gets_the_newest_whether_they_wait_in_memory_or_are_in_files(store: MessageStore) -> None:
    for number in range(8):
        send(store, b"%d" % number, properties=b"KEYS\x01k")
        if number == 4:
            store.flush()
    assert found(store, "k", limit=3) == [b"5", b"6", b"7"]
    assert found(store, "k", limit=5) == [b"3", b"4", b"5", b"6", b"7"]
    assert len(found(store, "k", limit=100)) == 8


def test_entries_that_are_not_in_the_file_yet_are_found(tmp_path: Path) -> None:
    store = open_store(small_config(tmp_path, index_entries=4000, commit_log_segment_size=1 << 20))
    send_with_keys(store, 100)
    store.flush()
    send_with_keys(store, 600, first=100)
    assert [found(store, f"k{number}") for number in range(700)] == [[b"%d" % number] for number in range(700)]


def test_a_span_of_time_is_looked_for_in_every_file_that_may_have_it(store: MessageStore) -> None:
    for number in range(200):
        send(store, b"%d" % number, properties=b"KEYS\x01k", store_timestamp=NOW + number * 1000)
    store.flush()
    for begin, end in ((0, 0), (10, 12), (60, 70), (62, 62), (63, 63), (126, 127), (199, 199)):
        span = found(store, "k", NOW + begin * 1000, NOW + end * 1000)
        assert span == [b"%d" % number for number in range(begin, end + 1)]
    assert found(store, "k", NOW - 9000, NOW - 1000) == found(store, "k", NOW + 200_000, NOW + 300_000) == []


def test_keys_with_the_same_hash_are_told_apart(store: MessageStore) -> None:
    assert java_hash_code("Aa") == java_hash_code("BB")
    send(store, b"first", properties=b"KEYS\x01Aa")
    send(store, b"second", properties=b"KEYS\x01BB")
    send(store, b"third", properties=b"KEYS\x01k", topic=b"Aa")
    send(store, b"fourth", properties=b"KEYS\x01k", topic=b"BB")
    store.flush()
    assert (found(store, "Aa"), found(store, "BB")) == ([b"first"], [b"second"])
    assert store.query(b"Aa", "k", 32, 0, NOW * 2).records == [store.pull(b"Aa", 0, 0, 1, 1000).records[0]]


def test_slots_far_apart_are_on_disk_after_a_crash(tmp_path: Path) -> None:
    config = small_config(tmp_path, index_slots=20_000)
    store = MessageStore.open(config)
    keys = [f"key{number}" for number in range(12)]
    pages = sorted({_key_hash(b"orders", key.encode()) % 20_000 * 4 // 4096 for key in keys})
    assert len(pages) < pages[-1] - pages[0] + 1
    for key in keys:
        send(store, key.encode(), properties=b"KEYS\x01" + key.encode())
    store.flush()
    crash(store)
    (path,) = config.index_directory.iterdir()
    slots = struct.unpack_from(">20000i", path.read_bytes(), 40)
    assert sorted(filter(None, slots)) == list(range(1, 13))
    again = open_store(config)
    again.flush()
    assert [found(again, key) for key in keys] == [[key.encode()] for key in keys]


def put(index_file: IndexFile, *entries: tuple[int, int]) -> int:
    """Puts entries of key hash and commit log offset. Returns the number of entries that fitted into the file."""
    records = [DispatchRequest(b"orders", 0, 0, offset, 100, 0, NOW, b"", True, True) for _, offset in entries]
    return index_file.put([key_hash for key_hash, _ in entries], records, 0)


def test_a_full_index_file_takes_no_more_and_loses_nothing(tmp_path: Path) -> None:
    open_files = OpenFiles(OsFileSystem(), 4)
    index_file = IndexFile.create(tmp_path / "20231114221320000", 16, 4, open_files, None)
    assert put(index_file, *((number, number * 100) for number in range(5))) == 3
    assert index_file.is_full
    assert put(index_file, (9, 900)) == 0
    assert [list(index_file.find(number, 0, NOW * 2)) for number in (0, 1, 2, 3, 9)] == [[0], [100], [200], [], []]
    open_files.close()


def test_entries_that_a_full_disk_refuses_are_written_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(small_config(tmp_path, index_entries=4000, commit_log_segment_size=1 << 20))

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    send(store, b"first")
    with monkeypatch.context() as full:
        full.setattr(OsFileSystem, "make_directory", refuse)
        send_with_keys(store, 600)
    assert found(store, "k0") == [b"0"]
    store.flush()
    assert [found(store, f"k{number}") for number in range(600)] == [[b"%d" % number] for number in range(600)]


def test_a_file_that_a_crash_cut_short_at_its_creation_gets_its_size(config: StoreConfig, store: MessageStore) -> None:
    crash(store)
    config.index_directory.mkdir()
    path = config.index_directory / "20231114221320000"
    path.touch()
    again = MessageStore.open(config)
    send_with_keys(again, 1)
    again.close()
    assert path.stat().st_size == 40 + 16 * 4 + 64 * 20


def test_a_walk_along_a_slot_pauses_every_thousand_entries_and_finds_what_lies_behind(tmp_path: Path) -> None:
    open_files = OpenFiles(OsFileSystem(), 4)
    index_file = IndexFile.create(tmp_path / "20231114221320000", 1, 5000, open_files, None)
    put(index_file, (7, 100), *((9, 200 + number) for number in range(3500)), (7, 9000))
    index_file.write()
    put(index_file, (7, 9100))
    assert list(index_file.find(7, 0, NOW * 2)) == [9100, 9000, None, None, None, 100]
    open_files.close()


@pytest.mark.slow
def test_messages_with_very_many_keys_come_into_the_index_a_few_at_a_time_and_are_found_all_the_same(tmp_path: Path) -> None:
    sizes = {"index_slots": 1000, "index_entries": 2_000_000, "commit_log_segment_size": 1 << 24, "max_message_size": 1 << 20}
    store = open_store(small_config(tmp_path, **sizes))
    keys = b"KEYS\x01" + b" ".join(b"%d" % key for key in range(1000))
    for number in range(600):
        append(store, b"%d" % number, properties=keys)
    store.publish(store.write())
    (index_file,) = store._index._index_files
    assert 2048 <= index_file.header.entry_count <= 2048 + 4 * 1000
    assert found(store, "7", limit=2) == [b"598", b"599"]
    while store._index._waiting:
        before = index_file.header.entry_count
        store.feed_index()
        assert index_file.header.entry_count - before <= 2048 + 4 * 1000
    assert index_file.header.entry_count == 600 * 1000 + 1
    assert found(store, "999", limit=2) == [b"598", b"599"]
