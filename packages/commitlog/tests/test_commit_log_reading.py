import json
import mmap
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocketmq_broker.message import sysflag, topics
from rocketmq_broker.message.record import HEAD_V4, MESSAGE_MAGIC, body_crc, encode_blank, encode_record, host_bytes
from rocketmq_commitlog import commit_log
from rocketmq_commitlog.commit_log import (
    MAX_KEYS,
    Damage,
    LogRange,
    LogRecord,
    first_record,
    keys_in,
    record_at,
    scan,
    segments,
    split_log,
)
from rocketmq_commitlog.errors import UnreadableStore
from rocketmq_commitlog.queue_units import QueueUnits
from tests.unit.pipelines.log_writer import HOST, LogWriter


def read(store: Path, range_bytes: int = 1 << 20) -> list[LogRecord | Damage]:
    return [found for log_range in split_log(store, range_bytes) for found in scan(log_range)]


def offsets(store: Path, range_bytes: int = 1 << 20) -> list[int]:
    return [found.commit_log_offset for found in read(store, range_bytes)]


def test_every_record_of_every_segment_is_read_once(tmp_path: Path) -> None:
    log = LogWriter(tmp_path, segment_size=2000)
    written = [log.half(str(number)) for number in range(50)]
    assert len(segments(tmp_path)) > 2
    assert offsets(tmp_path) == written


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(st.integers(1, 2500))
def test_wherever_the_ranges_are_cut_every_record_is_read_once(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    store = tmp_path_factory.mktemp("store")
    log = LogWriter(store, segment_size=2000)
    written = [log.half(str(number)) for number in range(20)]
    assert offsets(store, cut) == written


def test_a_log_whose_first_segments_were_deleted_begins_later(tmp_path: Path) -> None:
    log = LogWriter(tmp_path, begins_at=1 << 30)
    first = log.half("a", at=77)
    oldest = first_record(tmp_path)
    assert first == 1 << 30
    assert oldest is not None
    assert oldest.store_timestamp == 77


def test_an_empty_log_has_no_first_record(tmp_path: Path) -> None:
    LogWriter(tmp_path).save()
    assert first_record(tmp_path) is None


@pytest.mark.parametrize("range_bytes", [1 << 20, 256, 64, 7])
@pytest.mark.parametrize("place", [0, 4, 28, 88])
def test_damage_in_the_middle_is_stepped_over_and_told(tmp_path: Path, place: int, range_bytes: int) -> None:
    log = LogWriter(tmp_path, segment_size=4096)
    first, second, third = log.half("a"), log.half("b"), log.half("c")
    log.damage(second + place, b"\xee" * 4)
    found = read(tmp_path, range_bytes)
    assert [item.commit_log_offset for item in found if isinstance(item, LogRecord)] == [first, third]
    assert [item for item in found if isinstance(item, Damage)] == [Damage(second, third - second, ("b",))]


def test_damage_at_the_beginning_of_a_segment_is_told(tmp_path: Path) -> None:
    log = LogWriter(tmp_path)
    first, second = log.half("a"), log.half("b")
    log.damage(first, b"\xee" * 40)
    assert [type(item) for item in read(tmp_path, 64)] == [Damage, LogRecord]
    assert offsets(tmp_path, 64) == [first, second]


@pytest.mark.parametrize("host", [HOST, host_bytes("::1", 10911)], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize(
    ("topic", "encoded"),
    [(b"orders", b"KEYS\x01b\x02CLU\0"), (b"orders", b"KEYS\x01" + bytes(8) + b"\x02"), (b"or\0\0rs", b"KEYS\x01b")],
)
def test_a_record_that_lacks_bytes_is_not_intact(host: bytes, topic: bytes, encoded: bytes) -> None:
    def record(topic: bytes, encoded: bytes) -> bytes:
        return encode_record(
            topic=topic, queue_id=0, queue_offset=0, commit_log_offset=0, flag=0, sys_flag=0, born_timestamp=1, born_host=host,
            store_timestamp=1, store_host=host, reconsume_times=0, prepared_transaction_offset=0, body=b"{}", properties=encoded,
        )  # fmt: skip

    assert record_at(record(topic, encoded), 0, 0) is None
    assert record_at(record(b"orders", b"KEYS\x01b\0c"), 0, 0) is not None


def test_a_torn_end_is_not_yet_written_and_no_damage(tmp_path: Path) -> None:
    log = LogWriter(tmp_path, has_queues=False)
    first, second = log.half("a"), log.half("b")
    log.damage(second + 60, bytes(200))
    assert offsets(tmp_path) == [first]


def test_a_torn_end_is_a_gap_if_a_consume_queue_points_into_it(tmp_path: Path) -> None:
    log = LogWriter(tmp_path)
    first, second, end = log.half("a"), log.half("b"), log.end
    log.damage(second + 60, bytes(200))
    assert [found for found in read(tmp_path) if isinstance(found, Damage)] == [Damage(second, end - second, is_gap=True)]
    assert offsets(tmp_path) == [first, second]


def test_a_torn_end_is_a_gap_if_the_broker_had_come_further(tmp_path: Path) -> None:
    log = LogWriter(tmp_path, has_queues=False)
    log.half("a")
    (tmp_path / "progress.json").write_text(json.dumps({"position": log.end + 700, "queues": {}}))
    assert read(tmp_path)[1:] == [Damage(log.end, 700, is_gap=True)]


def test_what_says_how_far_the_log_goes_may_be_nonsense(tmp_path: Path) -> None:
    log = LogWriter(tmp_path)
    log.half("a")
    for nonsense in ("", "[]", '{"position": "9"}', "[" * 100_000):
        (tmp_path / "progress.json").write_text(nonsense)
        assert offsets(tmp_path) == [0]


@pytest.fixture
def several(tmp_path: Path) -> LogWriter:
    """Returns the writer of a log with four segments of 2,000 bytes each."""
    log = LogWriter(tmp_path, segment_size=2_000)
    for number in range(38):
        log.half(str(number), at=number)
    assert len(segments(tmp_path)) == 4
    return log


@pytest.mark.parametrize("missing", [[1], [1, 2], [2]])
def test_files_that_are_missing_in_the_middle_are_one_gap(several: LogWriter, missing: list[int]) -> None:
    for path in [segments(several.store)[number] for number in missing]:
        path.unlink()
    begins, ends = missing[0] * 2_000, (missing[-1] + 1) * 2_000
    (gap,) = [found for found in read(several.store, 300) if isinstance(found, Damage)]
    assert gap == Damage(begins, ends - begins, is_gap=True)
    behind = next(found for found in read(several.store) if isinstance(found, LogRecord) and found.commit_log_offset >= ends)
    assert gap.whole_again_ms == behind.store_timestamp


def test_a_last_file_that_is_missing_is_a_gap_up_to_what_the_consume_queues_know(several: LogWriter) -> None:
    segments(several.store)[-1].unlink()
    assert [found for found in read(several.store) if isinstance(found, Damage)] == [
        Damage(6_000, several.end - 6_000, is_gap=True)
    ]


def test_a_first_file_that_is_missing_has_expired(several: LogWriter) -> None:
    segments(several.store)[0].unlink()
    assert not [found for found in read(several.store) if isinstance(found, Damage)]


@pytest.mark.parametrize("length", [0, 650, 1_500])
@pytest.mark.parametrize("is_given_its_length", [True, False])
def test_a_segment_that_was_cut_short_is_a_gap(several: LogWriter, length: int, is_given_its_length: bool) -> None:
    second = segments(several.store)[1]
    os.truncate(second, length)
    if is_given_its_length:
        os.truncate(second, 2_000)
    (gap,) = [found for found in read(several.store, 300) if isinstance(found, Damage)]
    assert gap.is_gap
    assert gap.commit_log_offset + gap.size == 4_000
    assert 2_000 <= gap.commit_log_offset <= 2_000 + length


def test_a_file_that_was_made_ahead_is_no_part_of_the_log_yet(several: LogWriter) -> None:
    (several.store / "commitlog" / f"{8_000:020d}").write_bytes(bytes(2_000))
    assert not [found for found in read(several.store) if isinstance(found, Damage)]


def test_a_segment_that_is_no_file_is_unreadable(tmp_path: Path) -> None:
    log = LogWriter(tmp_path)
    log.half("a")
    os.mkfifo(tmp_path / "commitlog" / f"{1 << 20:020d}")
    with pytest.raises(UnreadableStore, match="not a regular file"):
        read(tmp_path)


EVIL = json.dumps({"order_id": "evil", "total_cents": 1_000_000_000}).encode()


def planted(offset: int, queue_offset: int, length: int = 0) -> bytes:
    """Returns a valid record of a committed order with this commit log offset, as a client could put it into a body."""
    return encode_record(
        topic=b"orders", queue_id=0, queue_offset=queue_offset, commit_log_offset=offset, flag=0,
        sys_flag=sysflag.TRANSACTION_COMMIT_TYPE, born_timestamp=1, born_host=HOST, store_timestamp=1, store_host=HOST,
        reconsume_times=0, prepared_transaction_offset=0, body=EVIL + b" " * length, properties=b"KEYS\x01evil\x02",
    )  # fmt: skip


PIECES = st.one_of(
    st.tuples(st.just("record"), st.integers(0, 30)),
    st.tuples(st.just("bytes"), st.binary(max_size=40)),
    st.tuples(st.just("magic"), st.just(b"\xda\xa3\x20\xa7" * 3)),
    st.tuples(st.just("blank"), st.just(encode_blank(300))),
)


def hostile(log: LogWriter, pieces: list[tuple[str, Any]]) -> int:
    """Appends a message whose body contains records with correct offsets, magic codes and blank marks. Returns its offset."""
    body = b""
    for kind, value in pieces:
        at = log.end + HEAD_V4.size + len(body)
        body += planted(at, value) if kind == "record" else value
    return log.append("orders", "carrier", None, 1, body=body)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.lists(PIECES, max_size=6), min_size=1, max_size=8),
    st.integers(1, 1500),
    st.booleans(),
    st.none() | st.tuples(st.integers(0, 7), st.integers(0, 400), st.binary(min_size=1, max_size=120)),
)
def test_hostile_bodies_are_bodies_however_the_log_is_cut(
    tmp_path_factory: pytest.TempPathFactory,
    bodies: list[list[tuple[str, Any]]],
    range_bytes: int,
    has_queues: bool,
    damage: tuple[int, int, bytes] | None,
) -> None:
    log = LogWriter(tmp_path_factory.mktemp("store"), has_queues=has_queues)
    written = [hostile(log, pieces) for pieces in bodies]
    ends = [*written[1:], log.end]
    hit: set[int] = set()
    if damage is not None:
        number, place, content = damage
        begins = min(written[number % len(written)] + place, log.end - 1)
        content = content[: log.end - begins]
        log.damage(begins, content)
        hit = {at for at, end in zip(written, ends, strict=True) if at < begins + len(content) and begins < end}
    in_order = read(log.store, sys.maxsize)
    assert read(log.store, range_bytes) == in_order
    records = [found for found in in_order if isinstance(found, LogRecord)]
    assert not [found for found in records if found.commit_log_offset not in written or found.body.startswith(EVIL)]
    if has_queues:
        assert {found.commit_log_offset for found in records} >= set(written) - hit


def overlapping(log: LogWriter, length: int, *, lengths_agree: bool) -> bytes:
    """Returns a body that consists of record heads. Their records overlap and have wrong checksums.

    With `lengths_agree`, each record ends at the body's end. Otherwise the record size contradicts the body length.
    """
    first = log.end + HEAD_V4.size
    tail = b"\x06orders\0\0"
    count = (length - len(tail)) // HEAD_V4.size
    end = count * HEAD_V4.size + len(tail)
    heads = []
    for number in range(count):
        at = number * HEAD_V4.size
        size = end - at if lengths_agree else 1_000
        body_length = end - at - HEAD_V4.size - len(tail)
        heads.append(HEAD_V4.pack(size, MESSAGE_MAGIC, 1, 0, 0, 0, first + at, 0, 1, HOST, 1, HOST, 0, 0, body_length))
    return b"".join(heads) + tail


@pytest.mark.parametrize("lengths_agree", [True, False])
@pytest.mark.parametrize("has_queues", [True, False])
def test_heads_in_a_body_cost_no_more_than_its_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lengths_agree: bool, has_queues: bool
) -> None:
    log = LogWriter(tmp_path, has_queues=has_queues)
    log.half("a")
    body = overlapping(log, 200_000, lengths_agree=lengths_agree)
    carrier = log.append("orders", "carrier", None, 1, body=body)
    if has_queues:
        log.half("b")
    log.damage(carrier, b"\xee" * 40)
    work = CountedWork()
    monkeypatch.setattr(commit_log, "body_crc", work.body_crc)
    data = CountedBytes((tmp_path / "commitlog" / f"{0:020d}").read_bytes())
    data.work = work
    monkeypatch.setattr(commit_log, "_mapped", lambda path: nullcontext(data))
    assert offsets(tmp_path)[0] == 0
    assert work.bytes < 30 * len(body)


class CountedWork:
    """A counter of the bytes that were copied or checksummed."""

    def __init__(self) -> None:
        self.bytes = 0

    def body_crc(self, body: bytes) -> int:
        self.bytes += len(body)
        return body_crc(body)


class CountedBytes(bytes):
    """A bytes object that counts the bytes copied from it."""

    work: CountedWork

    def __getitem__(self, place: Any) -> Any:
        part = super().__getitem__(place)
        self.work.bytes += len(part) if isinstance(part, bytes) else 1
        return part


def test_a_record_inside_a_body_is_not_taken_for_one(tmp_path: Path) -> None:
    log = LogWriter(tmp_path, segment_size=4096)
    first = log.half("a")
    copied = (tmp_path / "commitlog" / f"{0:020d}").read_bytes()[:200]
    carrier = log.append("orders", "b", None, 1, body=copied)
    assert offsets(tmp_path, 64) == [first, carrier]


def test_the_unused_length_of_a_segment_is_not_planned(tmp_path: Path) -> None:
    log = LogWriter(tmp_path, segment_size=4096)
    written = log.half("a")
    (segment,) = segments(tmp_path)
    os.truncate(segment, 1 << 30)
    assert sum(log_range.end - log_range.start for log_range in split_log(tmp_path)) < 1 << 20
    assert offsets(tmp_path) == [written]


def test_a_store_without_a_commit_log_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(UnreadableStore, match="no commit log"):
        segments(tmp_path)


def test_a_segment_that_is_gone_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(UnreadableStore, match="00000000000000000000"):
        list(scan(LogRange(str(tmp_path / f"{0:020d}"), 0, 100)))


_SCAN_BETWEEN_GUARD_PAGES = """
import mmap, sys
from pathlib import Path
from rocketmq_commitlog.commit_log import scan, split_log

guards = [mmap.mmap(-1, mmap.PAGESIZE, prot=0) for _ in range(1000)]
print([list(scan(log_range)) for log_range in split_log(Path(sys.argv[1]))])
"""


@pytest.mark.parametrize("pages", range(1, 6))
def test_the_search_for_a_record_stays_within_the_file(tmp_path: Path, pages: int) -> None:
    """Scanning does not read beyond the end of the file. Guard pages turn such a read into a segmentation fault."""
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / f"{0:020}").write_bytes(bytes(pages * mmap.PAGESIZE))
    scanned = subprocess.run(
        [sys.executable, "-c", _SCAN_BETWEEN_GUARD_PAGES, tmp_path], capture_output=True, text=True, check=False
    )
    assert (scanned.returncode, scanned.stdout, scanned.stderr) == (0, "[[]]\n", "")


def test_a_queue_offset_that_no_file_can_hold_proves_nothing(tmp_path: Path) -> None:
    LogWriter(tmp_path).half("a")
    assert not QueueUnits(tmp_path).point_to(0, 100, topics.HALF_TOPIC.encode(), 0, (1 << 63) - 1)


def test_keys_that_can_still_be_read_in_damage_are_told(tmp_path: Path) -> None:
    log = LogWriter(tmp_path, segment_size=4096)
    first = log.half("a-1 a-2")
    second = log.half("b")
    log.half("c")
    log.damage(first + 4, b"\xee")
    log.damage(second + 4, b"\xee")
    assert [item.keys for item in read(tmp_path) if isinstance(item, Damage)] == [("a-1", "a-2", "b")]


def test_of_a_body_full_of_keys_some_are_told() -> None:
    assert len(keys_in(b"KEYS\x01" + b" ".join(b"%x" % number for number in range(200_000)) + b"\x02")) < 20_000
    assert len(keys_in(b"".join(b"KEYS\x01%x\x02" % number for number in range(MAX_KEYS + 10)))) == MAX_KEYS


@pytest.mark.timeout(60)
def test_a_fifo_in_a_segments_place_keeps_nobody_waiting(tmp_path: Path) -> None:
    log = LogWriter(tmp_path, segment_size=2000)
    log.half("1")
    (segment,) = segments(tmp_path)
    segment.unlink()
    os.mkfifo(segment)
    with pytest.raises(UnreadableStore, match="not a regular file"):
        list(scan(LogRange(str(segment), 0, 100)))
