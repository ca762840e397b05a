"""Checks the guarantees of `rocketmq_broker.platform` under Windows."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rocketmq_broker.platform import durability, files, limits, locks, memory, processes, processors
from rocketmq_broker.store.files import OsFileSystem

GIB = 1 << 30


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    opened = OsFileSystem().open(tmp_path / "file", create=True)
    yield opened
    os.close(opened)


def test_bytes_are_written_and_read_at_positions_as_they_are(file: int) -> None:
    assert files.write_at(file, b"\r\n\x1a\0", 5) == 4
    assert files.write_at(file, memoryview(b"abc"), 1) == 3
    assert files.read_at(file, 100, 0) == b"\0abc\0\r\n\x1a\0"
    assert files.read_at(file, 2, 2) == b"bc"
    assert files.read_at(file, 1, 9) == files.read_at(file, 1, 5 * GIB) == b""


def test_a_file_gets_longer_and_shorter(file: int, tmp_path: Path) -> None:
    files.set_length(file, GIB)
    assert (tmp_path / "file").stat().st_size == GIB
    assert files.read_at(file, 4, GIB - 3) == b"\0\0\0"
    files.write_at(file, b"x", 5)
    files.set_length(file, 3)
    files.set_length(file, 10)
    assert files.read_at(file, 10, 0) == bytes(10)


def test_the_parts_that_are_not_zero_are_found(file: int) -> None:
    files.set_length(file, 5 << 20)
    assert (files.next_data(file, 0), files.end_of_data(file)) == (None, 0)
    files.write_at(file, b"x", (2 << 20) + 7)
    found = files.next_data(file, 0)
    assert found is not None
    assert found <= (2 << 20) + 7 < files.end_of_data(file)
    assert files.next_data(file, 3 << 20) is None


def test_files_are_synced_and_folders_need_no_sync(file: int, tmp_path: Path) -> None:
    durability.sync_data(file)
    durability.sync_file(file)
    durability.sync_directory(tmp_path)


def test_a_lock_excludes_others_until_its_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first, second = (OsFileSystem().open(path, create=True) for _ in range(2))
    assert locks.holder(second) is None
    assert locks.lock(first)
    files.write_at(first, b"lock", 0)
    assert not locks.lock(second)
    assert locks.holder(second) == "another process"
    os.close(first)
    assert locks.holder(second) is None
    assert locks.lock(second)
    os.close(second)


def test_an_open_file_cannot_be_removed_and_so_neither_its_lock(file: int, tmp_path: Path) -> None:
    with pytest.raises(PermissionError):
        (tmp_path / "file").unlink()


def test_a_folder_is_opened_and_files_in_it_come_and_go(tmp_path: Path) -> None:
    folder = locks.open_directory(tmp_path)
    assert locks.lock(folder)
    (tmp_path / "new").write_text("x")
    (tmp_path / "new").replace(tmp_path / "renamed")
    assert os.listdir(tmp_path) == ["renamed"]
    assert OsFileSystem().is_still(folder, tmp_path)
    os.close(folder)


def test_a_folder_that_is_missing_is_not_opened(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        locks.open_directory(tmp_path / "missing")


def test_the_machine_has_memory_processors_and_room_on_its_disk(tmp_path: Path) -> None:
    assert 1 << 28 < memory.physical_memory_bytes() < 1 << 48
    assert processors.usable_processors() >= 1
    assert 0 < files.used_ratio(tmp_path) <= 1
    assert bytes(memory.zeroed_memory(8192)) == bytes(8192)
    limits.raise_max_open_files()
    assert limits.max_open_files() > 1000


def test_what_windows_cannot_do_is_said() -> None:
    assert processes.NO_SUPERVISOR == "--brokers requires Linux or macOS: Windows has no signal that stops a broker"
    assert not processes.HAS_FLUSH_PROCESS
    assert files.mode_for_others(Path.home()) is None


def test_names_that_windows_cannot_hold_are_found(file: int, tmp_path: Path) -> None:
    assert files.ignores_case(tmp_path / "file")
    assert not files.is_reserved(tmp_path / "orders")
    assert not files.is_reserved(tmp_path / "%RETRY%credits")
    reserved = ["a|b", "CON", "con", "NUL", "AUX", "PRN", "COM1", "LPT9"]
    assert [name for name in reserved if files.is_reserved(tmp_path / name)] == reserved
