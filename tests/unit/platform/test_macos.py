"""Tests the calls that the broker makes on macOS. The tests simulate their results, because none of them runs on macOS."""

import errno
import fcntl
import os
import resource
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rocketmq_broker.platform import durability, flush_helper, limits

F_FULLFSYNC = 51
Answer = Callable[[int, int], int]


class MacOS:
    """A simulation of macOS for a program: F_FULLFSYNC exists, and fdatasync does not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.synced: list[str] = []
        self.refuses_with: int | None = None
        monkeypatch.setattr(sys, "platform", "darwin")
        monkeypatch.setattr(fcntl, "F_FULLFSYNC", F_FULLFSYNC, raising=False)
        monkeypatch.setattr(fcntl, "fcntl", self._fcntl)
        monkeypatch.setattr(os, "fsync", lambda file: self.synced.append("fsync"))
        monkeypatch.delattr(os, "fdatasync")

    def _fcntl(self, file: int, command: int) -> int:
        assert command == F_FULLFSYNC
        if self.refuses_with is not None:
            raise OSError(self.refuses_with, os.strerror(self.refuses_with))
        self.synced.append("F_FULLFSYNC")
        return 0


@pytest.fixture
def macos(monkeypatch: pytest.MonkeyPatch) -> MacOS:
    return MacOS(monkeypatch)


def test_data_leaves_the_cache_of_the_disk(macos: MacOS) -> None:
    durability.sync_data(1)
    durability.sync_file(1)
    assert macos.synced == ["F_FULLFSYNC", "F_FULLFSYNC"]


def test_the_names_in_a_folder_leave_it_too(macos: MacOS, tmp_path: Path) -> None:
    durability.sync_directory(tmp_path)
    assert macos.synced == ["F_FULLFSYNC"]


@pytest.mark.parametrize("reason", [errno.ENOTSUP, errno.ENOTTY, errno.EINVAL])
def test_a_file_system_without_it_is_synced_as_far_as_it_can(macos: MacOS, reason: int) -> None:
    macos.refuses_with = reason
    durability.sync_data(1)
    assert macos.synced == ["fsync"]


def test_a_disk_that_fails_is_not_asked_less(macos: MacOS) -> None:
    macos.refuses_with = errno.EIO
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        durability.sync_data(1)
    assert macos.synced == []


def test_the_flush_process_asks_the_same(macos: MacOS, tmp_path: Path) -> None:
    (tmp_path / "segment").touch()
    path = os.fsencode(tmp_path / "segment")
    with (tmp_path / "requests").open("w+b") as requests, (tmp_path / "answers").open("w+b") as answers:
        requests.write(struct.pack(">i", len(path)) + path)
        requests.seek(0)
        flush_helper.serve(requests, answers)
        answers.seek(0)
        assert answers.read() == struct.pack(">i", 0)
    assert macos.synced == ["F_FULLFSYNC"]


@pytest.mark.parametrize(
    ("current", "maximum", "raised_to"),
    [
        (256, resource.RLIM_INFINITY % (1 << 64), 10240),
        (256, 1024, 1024),
        (20_000, 1 << 40, 20_000),
    ],
    ids=["the usual one", "a low maximum", "one that is high already"],
)
def test_the_limit_on_open_files_is_raised_as_far_as_macos_accepts(
    macos: MacOS, monkeypatch: pytest.MonkeyPatch, current: int, maximum: int, raised_to: int
) -> None:
    limit = (current, maximum)

    def set_limit(kind: int, new: tuple[int, int]) -> None:
        nonlocal limit
        limit = new

    monkeypatch.setattr(resource, "getrlimit", lambda kind: limit)
    monkeypatch.setattr(resource, "setrlimit", set_limit)
    limits.raise_max_open_files()
    assert limit == (raised_to, maximum)
    assert limits.max_open_files() == raised_to
