"""A disk in memory behaves like a real disk, and loses the same data in a power failure."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.store.files import OsFileSystem
from rocketmq_broker.store.memory_files import MemoryFiles

FILE = Path("/memory/file")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 40), st.binary(min_size=1, max_size=20)),
        st.tuples(st.just("truncate"), st.integers(0, 60), st.just(b"")),
        st.tuples(st.just("sync"), st.just(0), st.just(b"")),
    ),
    max_size=12,
)


def test_a_file_that_is_not_there_cannot_be_renamed() -> None:
    files = MemoryFiles()
    with pytest.raises(FileNotFoundError):
        files.rename(FILE, FILE.with_name("other"))
    assert files.list(FILE.parent) == []


@given(STEPS)
def test_a_file_holds_what_a_real_one_would(steps: list[tuple[str, int, bytes]]) -> None:
    memory, real = MemoryFiles(), OsFileSystem()
    synced = b""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        ours, theirs = memory.open(FILE, create=True), real.open(path, create=True)
        memory.sync_directory(FILE.parent)
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


def test_a_power_failure_takes_the_names_that_were_not_synced() -> None:
    files = MemoryFiles()
    for name in ("kept", "renamed", "lost"):
        file = files.open(FILE.with_name(name), create=True)
        files.write(file, b"1", 0)
        files.sync(file)
        if name == "renamed":
            files.sync_directory(FILE.parent)
    files.rename(FILE.with_name("renamed"), FILE.with_name("other"))
    assert files.killed().list(FILE.parent) == ["kept", "lost", "other"]
    assert files.powered_off().list(FILE.parent) == ["kept", "renamed"]


def test_a_missing_file_is_created_on_request_only() -> None:
    files = MemoryFiles()
    with pytest.raises(FileNotFoundError):
        files.open(FILE)
    assert files.paths == []
    files.close(files.open(FILE, create=True))
    assert files.paths == [FILE]
