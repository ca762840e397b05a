import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rocketmq_broker.store import files
from rocketmq_broker.store.files import OpenFiles, OsFileSystem

FILES = OsFileSystem()


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    opened = FILES.open(tmp_path / "file", create=True)
    yield opened
    FILES.close(opened)


def test_what_the_disk_takes_in_parts_is_written_whole(file: int, monkeypatch: pytest.MonkeyPatch) -> None:
    write = files.write_at
    monkeypatch.setattr(files, "write_at", lambda file, data, position: write(file, bytes(data)[:4], position))
    FILES.write(file, b"abcdefghij", 3)
    assert FILES.read(file, 100, 0) == b"\0\0\0abcdefghij"


def test_a_write_for_which_there_is_no_room_is_never_taken_for_done(file: int) -> None:
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            FILES.write(file, b"x" * 25, 0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("reason", [errno.EROFS, errno.EACCES])
def test_a_file_that_cannot_be_written_is_opened_for_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: int
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"kept")
    really_open = os.open

    def open_read_only(path: Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_RDWR:
            raise OSError(reason, os.strerror(reason))
        return really_open(path, flags, mode)

    monkeypatch.setattr(os, "open", open_read_only)
    opened = FILES.open(path)
    assert FILES.read(opened, 10, 0) == b"kept"
    with pytest.raises(OSError) as refused:  # noqa: PT011
        FILES.write(opened, b"x", 0)
    assert refused.value.errno in (errno.EBADF, errno.EACCES)  # the latter on Windows
    FILES.close(opened)
    with pytest.raises(OSError, match=os.strerror(reason)):
        FILES.open(tmp_path / "new", create=True)


def test_a_missing_file_is_not_opened_for_reading(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FILES.open(tmp_path / "missing")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not say where a file has data: it is read")
def test_a_disk_error_is_not_taken_for_the_end_of_the_data(file: int) -> None:
    FILES.truncate(file, 100_000)
    assert FILES.next_data(file, 0) is None
    pipe, other_end = os.pipe()
    with pytest.raises(OSError, match="Illegal seek"):
        FILES.next_data(pipe, 0)
    os.close(pipe)
    os.close(other_end)


def test_the_least_recently_used_file_is_closed_for_another(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in "abc"]
    for path in paths:
        path.write_bytes(path.name.encode())
    closed: list[int] = []

    class Watched(OsFileSystem):
        def close(self, file: int) -> None:
            closed.append(file)
            super().close(file)

    files = Watched()
    open_files = OpenFiles(files, 2)
    a, b = open_files.get(paths[0]), open_files.get(paths[1])
    assert open_files.get(paths[0]) == a
    open_files.get(paths[2])
    assert closed == [b]
    assert [files.read(open_files.get(path), 1, 0) for path in paths] == [b"a", b"b", b"c"]
    open_files.close()
    assert len(closed) == 5


def test_each_new_directory_is_synced_with_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(files, "sync_directory", synced.append)
    FILES.make_directory(tmp_path / "store" / "commitlog")
    assert synced == [tmp_path, tmp_path / "store"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
@pytest.mark.parametrize(
    ("umask", "file_mode", "directory_mode"), [(0o022, 0o600, 0o700), (0o277, 0o400, 0o500), (0, 0o600, 0o700)]
)
def test_what_is_made_is_for_its_owner_alone_and_a_stricter_umask_counts(
    tmp_path: Path, umask: int, file_mode: int, directory_mode: int
) -> None:
    before = os.umask(umask)
    try:
        FILES.close(FILES.open(tmp_path / "file", create=True))
        FILES.make_directory(tmp_path / "directory")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == file_mode
    assert (tmp_path / "directory").stat().st_mode & 0o777 == directory_mode
