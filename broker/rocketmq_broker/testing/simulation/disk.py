"""The disk of a simulated machine: it survives its processes, and fails as disks do.

What a process writes is at once in the files, as other processes and the next start see them. Only a sync brings it to the disk:
a power failure takes the rest, or any sectors and names of it. A sync promises only what was written before it began.
"""

from __future__ import annotations

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
"""The system brings some of a file to the disk by itself after one of so many writes."""
_READS: Final = ("read", "next_data", "list", "size", "is_directory", "open_directory", "lock", "is_still")


@dataclass(slots=True)
class _DeathDue:
    operations_left: int
    """The process dies at the operation that makes this 0."""
    on_death: Callable[[], object]


class SimulatedDisk:
    """All files of one machine, and what is wrong with them."""

    def __init__(self, name: str, history: History, chance: random.Random) -> None:
        """Begins empty. `name` is the machine's in the history; `chance` decides about delays and damage."""
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
        self._full_met: Fired = nothing
        self._slow_met: Fired = nothing
        self._failed_write_met: Fired = nothing
        self._failed_sync_met: Fired = nothing

    def opened(self) -> ProcessFiles:
        """Returns the files as a new process sees them. `kill` and `lose_power` end it, with all that it has open."""
        files = ProcessFiles(self, self._memory)
        files.is_full = self._is_full
        self._alive.append(files)
        return files

    def new_flushing(self, files: ProcessFiles) -> NewFlushing:
        """Returns what flushes files of this process, after a delay that chance chooses."""

        def flushing(on_answer: Callable[[int], None], on_unavailable: object, make_room: object) -> Flushing:
            return DelayedFlush(files, on_answer, self._next_flush_s)

        return flushing

    def _next_flush_s(self) -> float:
        self._slow_met()
        return self._delays.uniform(*self._flush_s)

    def contents(self) -> dict[Path, bytes]:
        """Returns the content of each file, without the zeros after its last write."""
        return {path: self._memory.content(path) for path in self._memory.paths}

    # faults

    def kill(self, files: ProcessFiles | None = None) -> None:
        """Ends a process's use of the disk, or that of all processes. Contents stay; its locks end."""
        for each in [each for each in self._alive if files in (None, each)]:
            each.end()
            self._alive.remove(each)

    def lose_power(self) -> None:
        """Ends all processes. Each sector and name that was not synced is kept or lost, as chance has it."""
        self.kill()
        self._memory.lose_power(self._damage)
        self._fault("the power fails: what was not synced is lost, kept, or torn")

    def fill(self, fired: Fired = nothing) -> None:
        """Leaves no room: writes fail with ENOSPC, perhaps after a part of their data. `fired` is called at each of them."""
        self._set_full(is_full=True)
        self._full_met = fired
        self._fault("the disk is full")

    def free(self) -> None:
        """Makes room again."""
        self._set_full(is_full=False)
        self._fault("there is room on the disk again")

    def slow_down(self, min_s: float, max_s: float, fired: Fired = nothing) -> None:
        """Lets each flush that begins later take between so many seconds of the world's time, and calls `fired` then."""
        self._flush_s = (min_s, max_s)
        self._slow_met = fired
        self._fault(f"each flush takes {min_s:g} to {max_s:g} s")

    def speed_up(self) -> None:
        """Lets flushes take their usual time again; those under way keep theirs."""
        self._flush_s = _USUAL_FLUSH_S
        self._slow_met = nothing
        self._fault("the disk is as fast as before")

    def fail_writes(self, count: int, fired: Fired = nothing) -> None:
        """Lets the next `count` writes and truncations fail with EIO, perhaps after a part of the data.

        `fired` is called at each of them.
        """
        self._writes_to_fail = count
        self._failed_write_met = fired
        self._fault(f"the next {count} writes fail")

    def fail_syncs(self, count: int, fired: Fired = nothing) -> None:
        """Lets the next `count` syncs fail with EIO. Linux keeps what they were to sync for the next one, or drops it.

        `fired` is called at each of them.
        """
        self._syncs_to_fail = count
        self._failed_sync_met = fired
        self._fault(f"the next {count} syncs fail")

    def die_after(self, operations: int, on_death: Callable[[], object]) -> None:
        """Kills a process directly before or after the n-th next operation that changes or syncs anything; 1 is the next one.

        `on_death` is called then, and `Killed` is raised, so that the code that asked for the operation does not go on.
        Each call counts by itself. Of two deaths at one operation the second comes at the next operation.
        """
        self._deaths_due.append(_DeathDue(operations, on_death))

    def live(self) -> None:
        """Takes back each `die_after`."""
        self._deaths_due.clear()

    def mend(self) -> None:
        """Takes back each `die_after`, and the writes and syncs that were still to fail."""
        self.live()
        self._writes_to_fail = self._syncs_to_fail = 0

    def _set_full(self, *, is_full: bool) -> None:
        self._is_full = is_full
        for files in self._alive:
            files.is_full = is_full

    def _fault(self, text: str) -> None:
        self._history.note(self.name, "fault", text)

    # what the processes ask

    def do(
        self, files: ProcessFiles, what: str, parts: tuple[str | int | bytes, ...], deed: Callable[..., None], *given: Any
    ) -> None:
        """Does one operation, unless the process dies at it. Raises OSError, Killed."""
        self._history.mix(self.name, what, *parts)
        if not self._deaths_due or (death := self._death_at_this_operation()) is None:
            deed(*given)
            return
        is_done = self._deaths.random() < 0.5
        if is_done:
            try:
                deed(*given)
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
        """Counts an operation for each death to come, and takes out the first one whose time has come."""
        for death in self._deaths_due:
            death.operations_left -= 1
        due = next((death for death in self._deaths_due if death.operations_left <= 0), None)
        if due is not None:
            self._deaths_due.remove(due)
        return due

    def write(self, file: int, data: bytes | bytearray | memoryview, position: int) -> None:
        """Writes all, or a part where the disk is full or fails. Raises OSError."""
        if self._is_full or self._writes_to_fail:
            self._memory.write(file, self._part_of(data), position)
            self._fail_write()
        self._memory.write(file, data, position)
        if self._wear.random() * _WRITES_BACK_EVERY < 1:
            self._memory.write_back(file, self._wear)

    def truncate(self, file: int, length: int) -> None:
        """Sets a file's length. Raises OSError if the disk fails."""
        if self._writes_to_fail:
            self._fail_write()
        self._memory.truncate(file, length)

    def sync(self, file: int, synced: SyncedPages | None = None) -> None:
        """Syncs a file: all of it, or what `begin_sync` returned. Raises OSError if the disk fails."""
        if self._syncs_to_fail:
            self._memory.refuse_sync(file, self._damage)
            self._fail_sync()
        if synced is None:
            self._memory.sync(file)
        else:
            self._memory.end_sync(file, synced)

    def sync_directory(self, path: Path) -> None:
        """Syncs a directory. Raises OSError if the disk fails."""
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
    """The files of a disk as one process sees them (`rocketmq_broker.store.files.FileSystem`).

    Once the process is dead, everything but `close` raises Killed.
    """

    def __init__(self, disk: SimulatedDisk, memory: MemoryFiles) -> None:
        """Begins with nothing open."""
        super().__init__(memory)
        self._disk = disk
        self._memory = memory
        self._names: dict[int, str] = {}

    def end(self) -> None:
        """Closes everything, and raises Killed from now on."""
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
        """Closes the file; a dead process has closed it before."""
        if self._names.pop(file, None) is not None:
            self._memory.close(file)

    def write(self, file: int, data: bytes | bytearray | memoryview, position: int) -> None:
        """Writes. Raises OSError if the disk is full or fails."""
        parts = (self._name(file), position, len(data), zlib.crc32(data))
        self._do("write", parts, self._disk.write, file, data, position)

    def truncate(self, file: int, length: int) -> None:
        """Truncates the file."""
        self._do("truncate", (self._name(file), length), self._disk.truncate, file, length)

    def sync(self, file: int, synced: SyncedPages | None = None) -> None:
        """Syncs the file: all of it, or what `begin_sync` returned. Takes no time."""
        self._do("sync", (self._name(file),), self._disk.sync, file, synced)

    def begin_sync(self, file: int) -> SyncedPages:
        """Returns what a sync that begins now promises; `sync` ends it."""
        self._live()
        return self._memory.begin_sync(file)

    def sync_directory(self, path: Path) -> None:
        """Syncs the directory."""
        self._do("sync directory", (str(path),), self._disk.sync_directory, path)

    def make_directory(self, path: Path, *, is_durable: bool = True) -> None:
        """Makes the directory, with those above it."""
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

    def _do(self, what: str, parts: tuple[str | int | bytes, ...], deed: Callable[..., None], *given: Any) -> None:
        self._live()
        self._disk.do(self, what, parts, deed, *given)

    def _live(self) -> None:
        if self.is_dead:
            raise Killed


class DelayedFlush:
    """Flushes files of a process after a delay in the world's time (`rocketmq_broker.server.durability.flusher.Flushing`)."""

    def __init__(self, files: ProcessFiles, on_answer: Callable[[int], None], delay_s: Callable[[], float]) -> None:
        """`on_answer` gets 0 or an errno; `delay_s` returns the seconds that the next flush takes."""
        self._files = files
        self._on_answer = on_answer
        self._delay_s = delay_s
        self._due: asyncio.Handle | None = None

    def start(self) -> None:
        """Needs no preparation."""

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
        """Drops a pending answer."""
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
