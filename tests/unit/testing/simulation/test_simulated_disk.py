"""Tests the disk of a simulated machine: the files that its processes see, and its faults."""

import asyncio
import errno
import random
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from rocketmq_broker.testing.simulation.disk import ProcessFiles, SimulatedDisk
from rocketmq_broker.testing.simulation.history import History
from rocketmq_broker.testing.simulation.process import Killed
from tests.unit.testing.simulation.processes import Alone

FOLDER = Path("/store")
FILE = FOLDER / "file"


def a_disk(seed: int = 1) -> SimulatedDisk:
    return SimulatedDisk("disk", History(lambda: 0), random.Random(seed))


def made(files: ProcessFiles, content: bytes = b"", path: Path = FILE) -> int:
    """Creates a file with that content and makes both the content and the name durable. Returns the open file."""
    files.make_directory(path.parent)
    file = files.open(path, create=True)
    files.write(file, content, 0)
    files.sync(file)
    files.sync_directory(path.parent)
    return file


def a_disk_with_a_file(content: bytes = b"", *, seed: int = 1) -> tuple[SimulatedDisk, ProcessFiles, int]:
    """Returns a disk, the files of a process on it, and a file that is durable and open."""
    disk = a_disk(seed)
    files = disk.opened()
    return disk, files, made(files, content)


def sync_fails(disk: SimulatedDisk, files: ProcessFiles, file: int) -> None:
    disk.fail_syncs(1)
    with pytest.raises(OSError, match="Input/output"):
        files.sync(file)


def content(disk: SimulatedDisk, path: Path = FILE) -> bytes:
    """Returns the content that a new process reads."""
    files = disk.opened()
    return files.read(files.open(path), 1 << 20, 0)


# processes


def test_a_killed_process_leaves_what_it_wrote_and_its_locks() -> None:
    disk = a_disk()
    files, other = disk.opened(), disk.opened()
    file = made(files, b"synced")
    files.write(file, b"written", 0)
    assert files.lock(file)
    assert files.lock(files.open_directory(FOLDER))
    disk.kill(files)
    assert other.lock(other.open(FILE))
    assert other.lock(other.open_directory(FOLDER))
    assert content(disk) == b"written"


@pytest.mark.parametrize(
    "deed",
    [
        lambda files, file: files.write(file, b"1", 0),
        lambda files, file: files.read(file, 1, 0),
        lambda files, file: files.truncate(file, 0),
        lambda files, file: files.sync(file),
        lambda files, file: files.sync_directory(FOLDER),
        lambda files, file: files.open(FILE),
        lambda files, file: files.open_directory(FOLDER),
        lambda files, file: files.rename(FILE, FOLDER / "other"),
        lambda files, file: files.unlink(FILE),
        lambda files, file: files.make_directory(FOLDER / "folder"),
        lambda files, file: files.remove_directory(FOLDER),
        lambda files, file: files.size(FILE),
    ],
)
def test_the_code_of_a_killed_process_does_not_go_on_with_its_files(deed: Callable[[ProcessFiles, int], None]) -> None:
    disk, files, file = a_disk_with_a_file(b"before")
    disk.kill()
    with pytest.raises(Killed):
        deed(files, file)
    files.close(file)
    assert content(disk) == b"before"


def test_a_process_dies_at_the_operation_that_was_chosen_or_directly_after_it() -> None:
    left = set()
    for seed in range(40):
        deaths: list[str] = []
        disk, files, file = a_disk_with_a_file(b"1", seed=seed)
        disk.die_after(2, lambda deaths=deaths: deaths.append("dies"))
        files.write(file, b"2", 0)
        with pytest.raises(Killed):
            files.write(file, b"345", 0)
        assert deaths == ["dies"]
        with pytest.raises(Killed):
            files.write(file, b"6", 0)
        left.add(content(disk))
    assert left == {b"2", b"3", b"34", b"345"}


def test_a_death_may_take_the_machine_with_it() -> None:
    left = set()
    for seed in range(40):
        disk, files, file = a_disk_with_a_file(b"old", seed=seed)
        disk.die_after(2, disk.lose_power)
        files.write(file, b"new", 0)
        with pytest.raises(Killed):
            files.sync(file)
        left.add(content(disk))
    assert left == {b"old", b"new"}


def test_each_death_comes_at_its_own_operation() -> None:
    disk, deaths = a_disk(), list[str]()
    for name, operations in (("third", 3), ("first", 1), ("also third", 3)):
        disk.die_after(operations, lambda name=name: deaths.append(name))
    for file_name in "abcd":
        with suppress(Killed):
            disk.opened().open(Path("/", file_name), create=True)
    assert deaths == ["first", "third", "also third"]


def test_a_death_that_is_taken_back_does_not_come() -> None:
    disk, files, file = a_disk_with_a_file()
    disk.die_after(1, disk.lose_power)
    disk.live()
    files.write(file, b"1", 0)
    assert content(disk) == b"1"


# failing


def test_a_full_disk_takes_at_most_a_part_until_there_is_room_again() -> None:
    left = set()
    for seed in range(40):
        disk, files, file = a_disk_with_a_file(seed=seed)
        disk.fill()
        with pytest.raises(OSError, match="No space left") as failure:
            files.write(file, b"abc", 0)
        assert (failure.value.errno, files.used_ratio(FILE), disk.opened().used_ratio(FILE)) == (errno.ENOSPC, 1.0, 1.0)
        left.add(content(disk))
        disk.free()
        files.write(file, b"abc", 0)
        assert content(disk) == b"abc"
    assert left == {b"", b"a", b"ab", b"abc"}


def test_as_many_writes_fail_as_were_asked_for() -> None:
    disk, files, file = a_disk_with_a_file()
    disk.fail_writes(2)
    for deed in (lambda: files.write(file, b"abc", 0), lambda: files.truncate(file, 9)):
        with pytest.raises(OSError, match="Input/output") as failure:
            deed()
        assert failure.value.errno == errno.EIO
    files.write(file, b"abc", 0)
    assert content(disk) == b"abc"


def test_what_a_failed_sync_left_is_kept_or_dropped_now_or_lost_although_the_next_sync_succeeds() -> None:
    seen = set()
    for seed in range(60):
        disk, files, file = a_disk_with_a_file(b"old", seed=seed)
        files.write(file, b"new", 0)
        sync_fails(disk, files, file)
        read = files.read(file, 9, 0)
        files.sync(file)
        disk.lose_power()
        seen.add((read, content(disk)))
    assert seen == {(b"new", b"new"), (b"old", b"old"), (b"new", b"old")}


def test_what_is_written_again_after_a_failed_sync_is_on_the_disk_after_the_next_one() -> None:
    for seed in range(60):
        disk, files, file = a_disk_with_a_file(b"old", seed=seed)
        files.write(file, b"new", 0)
        sync_fails(disk, files, file)
        files.write(file, b"new", 0)
        files.sync(file)
        disk.lose_power()
        assert content(disk) == b"new"


def test_a_failed_sync_of_a_directory_promises_no_name() -> None:
    names = set()
    for seed in range(40):
        disk = a_disk(seed)
        files = disk.opened()
        made(files)
        files.rename(FILE, FOLDER / "other")
        disk.fail_syncs(1)
        with pytest.raises(OSError, match="Input/output"):
            files.sync_directory(FOLDER)
        disk.lose_power()
        names.add(tuple(disk.opened().list(FOLDER)))
    assert names == {("file",), ("other",)}


def test_of_two_syncs_the_one_that_began_later_counts_whichever_ends_last() -> None:
    disk, files, file = a_disk_with_a_file(b"0")
    files.write(file, b"1", 0)
    earlier = files.begin_sync(file)
    files.write(file, b"2", 0)
    files.sync(file)
    files.write(file, b"3", 0)
    files.sync(file, earlier)
    disk.lose_power()
    assert content(disk) in (b"2", b"3")


def test_a_sync_that_has_begun_brings_nothing_to_the_disk_that_the_disk_refused() -> None:
    left = set()
    for seed in range(60):
        disk, files, file = a_disk_with_a_file(b"old", seed=seed)
        files.write(file, b"new", 0)
        sync_fails(disk, files, file)
        files.sync(file, files.begin_sync(file))
        disk.lose_power()
        left.add(content(disk))
    assert left == {b"old", b"new"}


def test_a_length_that_grew_after_a_sync_began_may_be_lost() -> None:
    lengths = set()
    for seed in range(60):
        disk, files, file = a_disk_with_a_file(b"1", seed=seed)
        begun = files.begin_sync(file)
        files.truncate(file, 5000)
        files.sync(file, begun)
        disk.lose_power()
        lengths.add(len(content(disk)))
    assert lengths == {1, 5000}


def test_the_system_brings_to_the_disk_by_itself_what_is_overwritten_later() -> None:
    left = set()
    for seed in range(60):
        disk, files, file = a_disk_with_a_file(b"000", seed=seed)
        for number in range(200):
            files.write(file, b"%3d" % number, 0)
        disk.lose_power()
        left.add(content(disk))
    assert len(left) > 3


# flushing


class Flushes:
    """The flushes of one process, and their results."""

    def __init__(self, seed: int = 1) -> None:
        self.world = Alone()
        self.disk = SimulatedDisk("disk", self.world.history, random.Random(seed))
        self.files = self.disk.opened()
        self.file = made(self.files, b"0")
        self.answers: list[tuple[int, float]] = []
        self.flushing = self.disk.new_flushing(self.files)(self._on_answer, lambda reason: None, lambda: None)

    def _on_answer(self, error: int) -> None:
        self.answers.append((error, self.world.now_s))

    def run(self, *deeds: Callable[[], object], seconds: float = 60) -> None:
        """Starts flushing, calls all `deeds`, and advances the time."""

        async def play() -> None:
            self.flushing.start()
            for deed in deeds:
                deed()
            await asyncio.sleep(seconds)

        self.world.run(play())

    def begin(self) -> None:
        self.flushing.request([FILE])

    def write(self, data: bytes) -> None:
        self.files.write(self.file, data, 0)


def test_a_flush_takes_time_and_as_long_as_it_is_told_to_on_a_slow_disk() -> None:
    usual, slow = Flushes(), Flushes()
    usual.run(usual.begin)
    slow.disk.slow_down(2, 3)
    slow.run(slow.begin)
    ((_, usual_s),), ((_, slow_s),) = usual.answers, slow.answers
    assert 0 < usual_s < 0.1
    assert 2 <= slow_s <= 3


def test_each_write_sync_and_flush_that_meets_a_fault_tells_it() -> None:
    flushes, met = Flushes(), list[str]()
    disk, files = flushes.disk, flushes.files
    disk.fill(lambda: met.append("full"))
    with pytest.raises(OSError, match="No space left"):
        files.write(flushes.file, b"abc", 0)
    disk.free()
    disk.fail_writes(2, lambda: met.append("write"))
    with pytest.raises(OSError, match="Input/output"):
        files.write(flushes.file, b"abc", 0)
    disk.fail_syncs(2, lambda: met.append("sync"))
    with pytest.raises(OSError, match="Input/output"):
        files.sync(flushes.file)
    disk.mend()
    files.write(flushes.file, b"abc", 0)
    files.sync(flushes.file)
    disk.slow_down(1, 2, lambda: met.append("slow"))
    flushes.run(flushes.begin)
    assert met == ["full", "write", "sync", "slow"]


def test_a_flush_promises_what_was_written_before_it_began_and_may_lose_the_rest() -> None:
    left = set()
    for seed in range(60):
        flushes = Flushes(seed)
        flushes.run(partial(flushes.write, b"1"), flushes.begin, partial(flushes.write, b"2"))
        assert [error for error, _ in flushes.answers] == [0]
        flushes.disk.lose_power()
        left.add(content(flushes.disk))
    assert left == {b"1", b"2"}


def test_a_failed_flush_says_why() -> None:
    flushes = Flushes()
    flushes.disk.fail_syncs(1)
    flushes.run(flushes.begin)
    assert [error for error, _ in flushes.answers] == [errno.EIO]


def test_a_flush_of_a_file_that_is_gone_says_so() -> None:
    flushes = Flushes()
    flushes.files.unlink(FILE)
    flushes.run(flushes.begin)
    assert [error for error, _ in flushes.answers] == [errno.ENOENT]


def test_a_stopped_flush_answers_nothing() -> None:
    flushes = Flushes()
    flushes.run(flushes.begin, flushes.flushing.stop)
    assert flushes.answers == []


@pytest.mark.parametrize("end", ["kill", "lose_power"])
def test_a_flush_whose_process_dies_answers_nothing(end: str) -> None:
    flushes = Flushes()
    flushes.run(flushes.begin, getattr(flushes.disk, end))
    assert flushes.answers == []


# history


def played(seed: int, byte: bytes) -> str:
    history = History(lambda: 0)
    disk = SimulatedDisk("disk", history, random.Random(seed))
    file = made(disk.opened(), byte)
    assert file
    disk.lose_power()
    return history.digest


def test_all_that_is_written_is_in_the_digest() -> None:
    assert played(1, b"1") == played(1, b"1")
    assert played(1, b"1") != played(1, b"2")
