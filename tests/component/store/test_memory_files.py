"""Tests of files in memory. Written data is read again, and the files on disk remain unchanged."""

import os
from pathlib import Path

import pytest

from rocketmq_broker.store.files import OsFileSystem
from rocketmq_broker.store.memory_files import MemoryFiles


def test_a_written_part_shows_over_what_the_disk_has(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10_000)
    files = MemoryFiles(OsFileSystem())
    file = files.open(path)
    files.write(file, b"new", 4095)
    assert files.read(file, 6, 4093) == b"xxnewx"
    assert files.read(file, 100, 9_990) == b"x" * 10
    files.truncate(file, 4097)
    assert (files.size(path), files.read(file, 100, 4090)) == (4097, b"xxxxxne")
    files.truncate(file, 5000)
    assert files.read(file, 10, 4096) == b"e" + bytes(9)
    files.close(file)
    assert path.read_bytes() == b"x" * 10_000


def test_names_are_changed_in_memory_alone(tmp_path: Path) -> None:
    kept, gone = tmp_path / "kept", tmp_path / "gone"
    for path in (kept, gone):
        path.write_bytes(b"disk")
    files = MemoryFiles(OsFileSystem())
    files.unlink(gone)
    file = files.open(tmp_path / "made", create=True)
    files.write(file, b"memory", 0)
    files.close(file)
    files.rename(tmp_path / "made", kept)
    assert files.list(tmp_path) == ["kept"]
    file = files.open(kept)
    assert files.read(file, 100, 0) == b"memory"
    files.close(file)
    with pytest.raises(FileNotFoundError):
        files.open(gone)
    with pytest.raises(FileNotFoundError):
        files.unlink(gone)
    assert sorted(os.listdir(tmp_path)) == ["gone", "kept"]


def test_data_is_found_past_holes_of_the_disk_and_in_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    path.touch()
    os.truncate(path, 1 << 20)
    files = MemoryFiles(OsFileSystem())
    file = files.open(path)
    assert files.next_data(file, 0) is None
    files.write(file, b"data", 500_000)
    found = files.next_data(file, 0)
    assert found is not None
    assert 0 < found <= 500_000
    assert files.next_data(file, 600_000) is None
    files.close(file)
