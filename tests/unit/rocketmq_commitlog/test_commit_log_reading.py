import mmap
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocketmq_commitlog.commit_log import Damage, LogRange, LogRecord, first_record, scan, segments, split_log
from rocketmq_commitlog.errors import UnreadableStore
from tests.unit.pipelines.log_writer import LogWriter


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


def test_a_torn_end_is_not_yet_written_and_no_damage(tmp_path: Path) -> None:
    log = LogWriter(tmp_path)
    first, second = log.half("a"), log.half("b")
    log.damage(second + 60, bytes(200))
    assert offsets(tmp_path) == [first]


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
    """Unreadable pages after the file's last one make a segmentation fault of a look beyond it; so does bad luck without them."""
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / f"{0:020}").write_bytes(bytes(pages * mmap.PAGESIZE))
    scanned = subprocess.run(
        [sys.executable, "-c", _SCAN_BETWEEN_GUARD_PAGES, tmp_path], capture_output=True, text=True, check=False
    )
    assert (scanned.returncode, scanned.stdout, scanned.stderr) == (0, "[[]]\n", "")


def test_keys_that_can_still_be_read_in_damage_are_told(tmp_path: Path) -> None:
    log = LogWriter(tmp_path, segment_size=4096)
    first = log.half("a-1 a-2")
    second = log.half("b")
    log.half("c")
    log.damage(first + 4, b"\xee")
    log.damage(second + 4, b"\xee")
    assert [item.keys for item in read(tmp_path) if isinstance(item, Damage)] == [("a-1", "a-2", "b")]


@pytest.mark.timeout(60)
def test_a_fifo_in_a_segments_place_keeps_nobody_waiting(tmp_path: Path) -> None:
    log = LogWriter(tmp_path, segment_size=2000)
    log.half("1")
    (segment,) = segments(tmp_path)
    segment.unlink()
    os.mkfifo(segment)
    with pytest.raises(UnreadableStore, match="no regular file"):
        list(scan(LogRange(str(segment), 0, 100)))
