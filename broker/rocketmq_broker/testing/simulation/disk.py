"""Simulates the disk of a machine. The disk survives the machine's processes, and fails like a real disk.

Written data is visible immediately to other processes and after a restart. Only a sync makes it durable: a power failure may
lose any unsynced sectors and names. A sync covers only data written before it began.
"""

import asyncio
import errno
import os
import random
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from rocketmq_broker.server.durability.flusher import Flushing, NewFlushing
from rocketmq_broker.store.memory_file import SyncedPages
from rocketmq_broker.store.memory_files import MemoryFiles
from rocketmq_broker.testing.disk import Disk
from rocketmq_broker.testing.simulation.history import History
from rocketmq_broker.testing.simulation.network.notes import Fired, nothing
from rocketmq_broker.testing.simulation.process import Killed

_USUAL_FLUSH_S: Final = (0.0005, 0.005)
_WRITES_BACK_EVERY: Final = 64
"""The mean number of writes after which the kernel makes a part of the file durable without a sync."""
_READS: Final = (
    "read",
    "next_data",
    "list",
    "size",
    "is_directory",
    "open_directory",
    "lock",
    "is_still",
    "ignores_case",
    "is_reserved",
)


@dataclass(slots=True)
class _DeathDue:
    operations_left: int
    """The number of operations until the process dies; 1 if it dies at the next operation."""
    on_death: Callable[[], object]


class SimulatedDisk:
    """The files of one machine, and the faults of its disk."""

    def __init__(self, name: str, history: History, chance: random.Random) -> None:
        """Creates an empty disk.

        `name` is the machine's name in the history. `chance` is the random stream for delays and damage.
        """
        self.name = name
        self._history = history
        self._memory = MemoryFiles()
        self._alive: list[ProcessFiles] = []
        self._delays, self._wear, self._damage, self._deaths = (random.Random(chance.getrandbits(64)) for _ in range(4))
        self._flush_s = _USUAL_FLUSH_S
        self._is_full = False
        self._writes_to_fail = 0
        self._syncs_to_fail = 0
        self._deaths_due: list[_DeathDue] = []
        self.unsynced_at_power_failures: list[tuple[Path, range]] = []
        """The positions in each file that were not synced before a power failure, from the first reverted byte to the end."""
        self._full_met: Fired = nothing
        self._slow_met: Fired = nothing
        self._failed_write_met: Fired = nothing
        self._failed_sync_met: Fired = nothing

    def opened(self) -> "ProcessFiles":
        """Returns the file system for a new process. `kill` and `lose_power` close its files and make it unusable."""
        files = ProcessFiles(self, self._memory)
        files.is_full = self._is_full
        self._alive.append(files)
        return files

    def new_flushing(self, files: "ProcessFiles") -> NewFlushing:
        """Returns a factory of flushers for this process. Each flush ends after a random delay."""

        def flushing(on_answer: Callable[[int], None], on_unavailable: object, make_room: object) -> Flushing:
            return DelayedFlush(files, on_answer, self._next_flush_s)

        return flushing

    def _next_flush_s(self) -> float:
        self._slow_met()
        return self._delays.uniform(*self._flush_s)

    def contents(self) -> dict[Path, bytes]:
        """Returns the content of each file up to its last written byte."""
        return {path: self._memory.content(path) for path in self._memory.paths}

    # faults

    def kill(self, files: "ProcessFiles | None" = None) -> None:
        """Closes the files and releases the locks of one process, or of all processes. Written data is kept."""
        for each in [each for each in self._alive if files in (None, each)]:
            each.end()
            self._alive.remove(each)

    def lose_power(self) -> None:
        """Closes the files of all processes. Each unsynced sector and name is randomly kept or lost."""
        self.kill()
        before = self.contents()
        self._memory.lose_power(self._damage)
        after = self.contents()
        for path, content in before.items():
            if (reverted := _first_difference(content, after.get(path, b""))) is not None:
                self.unsynced_at_power_failures.append((path, range(reverted, len(content))))
        self._fault("power failure: unsynced data is lost, kept or torn")

    def fill(self, fired: Fired = nothing) -> None:
        """Fills the disk: writes fail with ENOSPC, some after a part of their data. `fired` is called at each failed write."""
        self._set_full(is_full=True)
        self._full_met = fired
        self._fault("the disk is full")

    def free(self) -> None:
        """Frees space on the disk after `fill`."""
        self._set_full(is_full=False)
        self._fault("the disk is no longer full")

    def slow_down(self, min_s: float, max_s: float, fired: Fired = nothing) -> None:
        """Makes later flushes take `min_s` to `max_s` seconds of the world's time. `fired` is called at each flush."""
        self._flush_s = (min_s, max_s)
        self._slow_met = fired
        self._fault(f"each flush takes {min_s:g} to {max_s:g} s")

    def speed_up(self) -> None:
        """Restores the normal duration of flushes. Flushes in progress keep the longer duration."""
        self._flush_s = _USUAL_FLUSH_S
        self._slow_met = nothing
        self._fault("the disk has its normal speed again")

    def fail_writes(self, count: int, fired: Fired = nothing) -> None:
        """Makes the next `count` writes and truncations fail with EIO. Some of the writes store a part of their data first.

        `fired` is called at each failure.
        """
        self._writes_to_fail = count
        self._failed_write_met = fired
        self._fault(f"the next {count} writes fail")

    def fail_syncs(self, count: int, fired: Fired = nothing) -> None:
        """Makes the next `count` syncs fail with EIO. As on Linux, unsynced data is kept for the next sync, or dropped.

        `fired` is called at each failure.
        """
        self._syncs_to_fail = count
        self._failed_sync_met = fired
        self._fault(f"the next {count} syncs fail")

    def die_after(self, operations: int, on_death: Callable[[], object]) -> None:
        """Kills a process before, during or after one of its next operations that change or sync a file.

        `operations` is the number of that operation; 1 is the next one. At the kill `on_death` is called, and `Killed` is
        raised so that the code that requested the operation does not continue. Each call counts separately. If two kills
        are due at the same operation, the second occurs at the next operation.
        """
        self._deaths_due.append(_DeathDue(operations, on_death))

    def live(self) -> None:
        """Cancels all kills planned by `die_after`."""
        self._deaths_due.clear()

    def mend(self) -> None:
        """Cancels all kills planned by `die_after`, and all failures of writes and syncs."""
        self.live()
        self._writes_to_fail = self._syncs_to_fail = 0

    def _set_full(self, *, is_full: bool) -> None:
        self._is_full = is_full
        for files in self._alive:
            files.is_full = is_full

    def _fault(self, text: str) -> None:
        self._history.note(self.name, "fault", text)

    # operations of processes

    def do(
        self, files: "ProcessFiles", what: str, parts: tuple[str | int | bytes, ...], operation: Callable[..., None], *given: Any
    ) -> None:
        """Executes one operation. If a kill is due, kills the process before, during or after it. Raises OSError, Killed."""
        self._history.mix(self.name, what, *parts)
        if not self._deaths_due or (death := self._death_at_this_operation()) is None:
            operation(*given)
            return
        is_done = self._deaths.random() < 0.5
        if is_done:
            try:
                operation(*given)
            except OSError:
                is_done = False
        elif what == "write":
            file, data, position = given
            self._memory.write(file, self._part_of(data), position)
        self._fault(f"dies {'after' if is_done else 'at'} {what} {parts[0]!s}")
        death.on_death()
        self.kill(files)
        raise Killed

    def _death_at_this_operation(self) -> _DeathDue | None:
        """Counts an operation for each planned kill. Removes and returns the first kill that is due, or returns None."""
        for death in self._deaths_due:
            death.operations_left -= 1
        due = next((death for death in self._deaths_due if death.operations_left <= 0), None)
        if due is not None:
            self._deaths_due.remove(due)
        return due

    def write(self, file: int, data: bytes | bytearray | memoryview, position: int) -> None:
        """Writes the data, or only a part of it if the disk is full or failing. Raises OSError."""
        if self._is_full or self._writes_to_fail:
            self._memory.write(file, self._part_of(data), position)
            self._fail_write()
        self._memory.write(file, data, position)
        if self._wear.random() * _WRITES_BACK_EVERY < 1:
            self._memory.write_back(file, self._wear)

    def truncate(self, file: int, length: int) -> None:
        """Sets a file's length. Raises OSError if the disk is failing."""
        if self._writes_to_fail:
            self._fail_write()
        self._memory.truncate(file, length)

    def sync(self, file: int, synced: SyncedPages | None = None) -> None:
        """Syncs the whole file, or the content that `begin_sync` returned. Raises OSError if the disk is failing."""
        if self._syncs_to_fail:
            self._memory.refuse_sync(file, self._damage)
            self._fail_sync()
        if synced is None:
            self._memory.sync(file)
        else:
            self._memory.end_sync(file, synced)

    def sync_directory(self, path: Path) -> None:
        """Syncs a directory. Raises OSError if the disk is failing."""
        if self._syncs_to_fail:
            self._fail_sync()
        self._memory.sync_directory(path)

    def _part_of(self, data: bytes | bytearray | memoryview) -> memoryview:
        return memoryview(data)[: self._damage.choice((0, self._damage.randrange(len(data) + 1)))]

    def _fail_write(self) -> NoReturn:
        if not self._writes_to_fail:
            self._full_met()
            _raise(errno.ENOSPC)
        self._writes_to_fail -= 1
        self._failed_write_met()
        _raise(errno.EIO)

    def _fail_sync(self) -> NoReturn:
        self._syncs_to_fail -= 1
        self._failed_sync_met()
        _raise(errno.EIO)


class ProcessFiles(Disk):
    """The file system of one process (`rocketmq_broker.store.files.FileSystem`).

    After the process has ended, all methods except `close` raise Killed.
    """

    def __init__(self, disk: SimulatedDisk, memory: MemoryFiles) -> None:
        """Creates a file system without open files."""
        super().__init__(memory)
        self._disk = disk
        self._memory = memory
        self._names: dict[int, str] = {}

    def end(self) -> None:
        """Closes all files. Later calls raise Killed."""
        self.is_dead = True
        for file in self._names:
            self._memory.close(file)
        self._names.clear()
        for name in _READS:
            setattr(self, name, _killed)

    def open(self, path: Path, *, create: bool = False) -> int:
        """Opens the file."""
        self._live()
        if create and self._memory.size(path) is None:
            self._do("create", (str(path),), self._create, path)
        file = self._memory.open(path)
        self._names[file] = str(path)
        return file

    def close(self, file: int) -> None:
        """Closes the file. Does nothing after the process has ended, because its files are already closed."""
        if self._names.pop(file, None) is not None:
            self._memory.close(file)

    def write(self, file: int, data: bytes | bytearray | memoryview, position: int) -> None:
        """Writes the data. Raises OSError if the disk is full or failing."""
        parts = (self._name(file), position, len(data), zlib.crc32(data))
        self._do("write", parts, self._disk.write, file, data, position)

    def truncate(self, file: int, length: int) -> None:
        """Truncates the file."""
        self._do("truncate", (self._name(file), length), self._disk.truncate, file, length)

    def sync(self, file: int, synced: SyncedPages | None = None) -> None:
        """Syncs the whole file, or the content that `begin_sync` returned. Takes no time."""
        self._do("sync", (self._name(file),), self._disk.sync, file, synced)

    def begin_sync(self, file: int) -> SyncedPages:
        """Begins a sync, and returns the content that `sync` will make durable."""
        self._live()
        return self._memory.begin_sync(file)

    def sync_directory(self, path: Path) -> None:
        """Syncs the directory."""
        self._do("sync directory", (str(path),), self._disk.sync_directory, path)

    def make_directory(self, path: Path, *, is_durable: bool = True) -> None:
        """Creates the directory and its parents."""
        self._live()
        if path != path.parent and not self._memory.is_directory(path):
            self.make_directory(path.parent, is_durable=is_durable)
            self._do("make directory", (str(path), int(is_durable)), self._make_directory, path, is_durable)

    def remove_directory(self, path: Path) -> None:
        """Removes the directory."""
        self._do("remove directory", (str(path),), self._memory.remove_directory, path)

    def rename(self, source: Path, target: Path) -> None:
        """Renames the file."""
        self._do("rename", (str(source), str(target)), self._memory.rename, source, target)

    def unlink(self, path: Path) -> None:
        """Deletes the file."""
        self._do("unlink", (str(path),), self._memory.unlink, path)

    def open_directory(self, path: Path) -> int:
        """Opens a directory for locking."""
        self._live()
        file = self._memory.open_directory(path)
        self._names[file] = str(path)
        return file

    def _create(self, path: Path) -> None:
        self._memory.close(self._memory.open(path, create=True))

    def _make_directory(self, path: Path, is_durable: bool) -> None:
        self._memory.make_directory(path, is_durable=is_durable)

    def _name(self, file: int) -> str:
        self._live()
        return self._names[file]

    def _do(self, what: str, parts: tuple[str | int | bytes, ...], operation: Callable[..., None], *given: Any) -> None:
        self._live()
        self._disk.do(self, what, parts, operation, *given)

    def _live(self) -> None:
        if self.is_dead:
            raise Killed


class DelayedFlush:
    """Flushes files of a process after a delay in the world's time (`rocketmq_broker.server.durability.flusher.Flushing`)."""

    def __init__(self, files: ProcessFiles, on_answer: Callable[[int], None], delay_s: Callable[[], float]) -> None:
        """Creates a flusher. `on_answer` is called with 0 or an errno. `delay_s` returns the duration of the next flush."""
        self._files = files
        self._on_answer = on_answer
        self._delay_s = delay_s
        self._due: asyncio.Handle | None = None

    def start(self) -> None:
        """Does nothing, because no preparation is needed."""

    def request(self, paths: Sequence[Path]) -> None:
        """Begins the flush of these files."""
        error = 0
        begun: list[tuple[int, SyncedPages]] = []
        for path in paths:
            try:
                file = self._files.open(path)
                begun.append((file, self._files.begin_sync(file)))
            except OSError as failure:
                error = failure.errno or -1
        self._due = asyncio.get_running_loop().call_later(self._delay_s(), self._end, begun, error)

    def stop(self) -> None:
        """Cancels the flush in progress, so that `on_answer` is not called."""
        if self._due is not None:
            self._due.cancel()

    def _end(self, begun: list[tuple[int, SyncedPages]], error: int) -> None:
        for file, synced in begun:
            try:
                self._files.sync(file, synced)
            except OSError as failure:
                error = failure.errno or -1
            except Killed:
                return
            finally:
                self._files.close(file)
        self._on_answer(error)


def _killed(*given: object) -> NoReturn:
    raise Killed


def _raise(number: int) -> NoReturn:
    raise OSError(number, os.strerror(number))


def _first_difference(before: bytes, after: bytes) -> int | None:
    """Returns the first position at which a file's bytes changed, or None. Bytes after the end are zeros."""
    if before == after.ljust(len(before), b"\0"):
        return None
    return next((at for at, (old, new) in enumerate(zip(before, after, strict=False)) if old != new), len(after))
