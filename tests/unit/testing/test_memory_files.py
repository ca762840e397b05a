"""A disk in memory does what a real one does, and loses what a power failure takes."""

from __future__ import annotations

import errno
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.store.files import OsFileSystem
from rocketmq_broker.testing.disk import Disk
from rocketmq_broker.testing.memory_files import MemoryFiles

FILE = Path("/memory/file")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 40), st.binary(min_size=1, max_size=20)),
        st.tuples(st.just("truncate"), st.integers(0, 60), st.just(b"")),
        st.tuples(st.just("sync"), st.just(0), st.just(b"")),
    ),
    max_size=12,
)


@given(STEPS)
def test_a_file_holds_what_a_real_one_would(steps: list[tuple[str, int, bytes]]) -> None:
    memory, real = MemoryFiles(), OsFileSystem()
    synced = b""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        ours, theirs = memory.open(FILE, create=True), real.open(path, create=True)
        for step, position, data in steps:
            if step == "write":
                memory.write(ours, data, position)
                real.write(theirs, data, position)
            elif step == "truncate":
                memory.truncate(ours, position)
                real.truncate(theirs, position)
            else:
                memory.sync(ours)
                synced = path.read_bytes()
        expected = path.read_bytes()
        real.close(theirs)
    assert memory.read(ours, 1000, 0) == expected
    assert memory.size(FILE) == len(expected)
    left = memory.killed()
    assert left.read(left.open(FILE), 1000, 0) == expected
    left = memory.powered_off()
    assert left.read(left.open(FILE), 1000, 0) == synced


def test_names_are_those_of_a_tree() -> None:
    files = MemoryFiles()
    for name in ("/a/b/1", "/a/b/2", "/a/c"):
        files.close(files.open(Path(name), create=True))
    assert files.list(Path("/a")) == ["b", "c"]
    assert files.is_directory(Path("/a/b"))
    assert not files.is_directory(Path("/a/c"))
    files.rename(Path("/a/b/1"), Path("/a/c"))
    assert files.list(Path("/a/b")) == ["2"]
    with pytest.raises(FileNotFoundError):
        files.unlink(Path("/a/b/1"))


def test_a_lock_is_had_once_until_it_is_given_back() -> None:
    files = MemoryFiles()
    for open_ in (lambda: files.open(FILE, create=True), lambda: files.open_directory(Path("/memory"))):
        first, second = open_(), open_()
        assert files.lock(first)
        assert not files.lock(second)
        files.close(first)
        assert files.lock(second)


def test_a_full_disk_takes_nothing() -> None:
    disk = Disk(MemoryFiles())
    file = disk.open(FILE, create=True)
    disk.is_full = True
    with pytest.raises(OSError, match="No space left") as failure:
        disk.write(file, b"1", 0)
    assert (failure.value.errno, disk.used_ratio(FILE)) == (errno.ENOSPC, 1.0)


def test_what_a_killed_broker_writes_goes_nowhere() -> None:
    files = MemoryFiles()
    disk = Disk(files)
    file = disk.open(FILE, create=True)
    disk.write(file, b"before", 0)
    disk.is_dead = True
    disk.write(file, b"after!", 0)
    disk.truncate(file, 0)
    disk.sync(file)
    disk.unlink(FILE)
    disk.rename(FILE, Path("/other"))
    disk.close(disk.open(Path("/new"), create=True))
    assert files.paths == [FILE]
    assert bytes(files.content(FILE)) == b"before"
