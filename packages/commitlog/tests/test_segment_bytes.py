"""Tests that a commit log in memory is read like its files, including damage and gaps."""

from pathlib import Path

import pytest

from rocketmq_commitlog.commit_log import Damage, LogRecord, scan, split_log
from rocketmq_commitlog.segment_bytes import scan_bytes
from tests.unit.pipelines.log_writer import LogWriter


@pytest.fixture
def log(tmp_path: Path) -> LogWriter:
    return LogWriter(tmp_path / "store", segment_size=2_000)


def in_memory(log: LogWriter) -> dict[int, bytes]:
    return {int(path.name): path.read_bytes() for path in (log.store / "commitlog").iterdir()}


def in_files(log: LogWriter) -> list[LogRecord | Damage]:
    return [found for log_range in split_log(log.store) for found in scan(log_range)]


def test_records_of_several_segments_come_in_their_order(log: LogWriter) -> None:
    offsets = [log.deliver(f"o-{number}") for number in range(20)]
    found = list(scan_bytes(in_memory(log)))
    assert [record.commit_log_offset for record in found] == offsets
    assert len(in_memory(log)) > 1
    assert found == in_files(log)


def test_a_log_without_records_is_empty(log: LogWriter) -> None:
    assert list(scan_bytes({0: bytes(2_000)})) == list(scan_bytes({})) == []


def test_a_damaged_record_is_a_stretch_up_to_the_next(log: LogWriter) -> None:
    log.deliver("a")
    damaged = log.deliver("b")
    intact = log.deliver("c")
    log.flip(damaged, b"b", b'"order_id": "')
    found = list(scan_bytes(in_memory(log)))
    assert [type(one) for one in found] == [LogRecord, Damage, LogRecord]
    assert found[1] == Damage(damaged, intact - damaged)


def test_a_missing_segment_is_a_gap(log: LogWriter) -> None:
    for number in range(20):
        log.deliver(f"o-{number}")
    segments = in_memory(log)
    del segments[2_000]
    gaps = [found for found in scan_bytes(segments) if isinstance(found, Damage)]
    assert gaps == [Damage(2_000, 2_000, is_gap=True)]


def test_a_segment_that_was_made_ahead_of_its_use_ends_no_log(log: LogWriter) -> None:
    log.deliver("a")
    assert len(list(scan_bytes(in_memory(log) | {2_000: bytes(2_000)}))) == 1
