"""Tests that the disk of a broker can fill up and that the broker can be killed."""

import errno
from pathlib import Path

import pytest

from rocketmq_broker.store.memory_files import MemoryFiles
from rocketmq_broker.testing.disk import Disk

FILE = Path("/memory/file")


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
