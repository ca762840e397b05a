"""Keeps the system running.

Starts its processes in order, and restarts a process that has exited unless a scenario keeps it down.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Final, Self

from demo.processes import Process
from demo.system import System

_LOOK_EVERY_S: Final = 0.1
_BEFORE_NEXT_START_S: Final = 1.0
_MAX_DEATHS: Final = 5
"""The number of deaths after which a process is not restarted. Only deaths before the process is ready are counted."""


class Health(Enum):
    """The state of a process. The values are shown on the screen."""

    WAITING = "waits for the broker"
    STARTING = "starting"
    READY = "ready"
    KEPT_DOWN = "down on purpose"
    DOWN = "down"
    FAILED = "failed again and again: see its log"


@dataclass(slots=True)
class _Kept:
    """A process, and its state."""

    process: Process
    health: Health = Health.WAITING
    is_kept_down: bool = False
    started_s: float = 0.0
    deaths_before_ready: int = 0


class Keeper:
    """Starts all processes of a system and restarts them when they exit. Runs in a thread until the end of the block."""

    def __init__(self, system: System) -> None:
        """Creates a keeper without starting the processes of `system`."""
        self._broker = _Kept(system.broker)
        self._others = [_Kept(process) for process in system.services]
        self._leave = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="keeper", daemon=True)
        self._lock = threading.Lock()
        self.deaths_ms: dict[str, list[int]] = {kept.process.name: [] for kept in self._all}
        """Maps the name of each process to the times of its deaths, in milliseconds since the epoch."""

    def __enter__(self) -> Self:
        """Starts the thread that starts and watches the processes."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stops the thread. The processes keep running."""
        self._leave.set()
        self._thread.join()

    @property
    def healths(self) -> dict[str, Health]:
        """Maps the name of each process to its state."""
        return {kept.process.name: kept.health for kept in self._all}

    @property
    def pids(self) -> dict[str, int]:
        """Maps the names of running processes to their process ids."""
        return {kept.process.name: kept.process.pid for kept in self._all if kept.process.is_running}

    def is_ready(self, process: Process) -> bool:
        """Returns True if the process is ready."""
        return self.healths[process.name] is Health.READY

    @property
    def is_all_ready(self) -> bool:
        """True if all processes are ready."""
        return all(health is Health.READY for health in self.healths.values())

    def kill(self, process: Process) -> None:
        """Kills the process with SIGKILL. The keeper restarts it."""
        with self._lock:
            process.kill()
            self._note_end(self._of(process))
            self._of(process).health = Health.DOWN

    @contextmanager
    def kept_down(self, process: Process) -> Iterator[None]:
        """Kills the process with SIGKILL, and does not restart it until the end of the block."""
        kept = self._of(process)
        with self._lock:
            kept.is_kept_down = True
            process.kill()
            self._note_end(kept)
            kept.health = Health.KEPT_DOWN
        try:
            yield
        finally:
            with self._lock:
                kept.is_kept_down = False

    @property
    def _all(self) -> list[_Kept]:
        return [self._broker, *self._others]

    def _of(self, process: Process) -> _Kept:
        return next(kept for kept in self._all if kept.process is process)

    def _watch(self) -> None:
        while not self._leave.wait(_LOOK_EVERY_S):
            for kept in self._all:
                is_due = kept is self._broker or kept.health is not Health.WAITING or self._broker.health is Health.READY
                if is_due:
                    self._look_after(kept)

    def _look_after(self, kept: _Kept) -> None:
        if kept.process.is_running:
            if kept.health is not Health.READY and kept.process.is_ready:
                kept.health, kept.deaths_before_ready = Health.READY, 0
            return
        with self._lock:
            if kept.is_kept_down or kept.health is Health.FAILED or self._leave.is_set():
                return
            if kept.health in (Health.STARTING, Health.READY):
                self._note_death(kept)
            elif time.monotonic() - kept.started_s >= _BEFORE_NEXT_START_S:
                kept.process.spawn()
                kept.started_s, kept.health = time.monotonic(), Health.STARTING

    def _note_end(self, kept: _Kept) -> None:
        self.deaths_ms[kept.process.name].append(time.time_ns() // 1_000_000)

    def _note_death(self, kept: _Kept) -> None:
        self._note_end(kept)
        kept.deaths_before_ready += kept.health is Health.STARTING
        kept.health = Health.FAILED if kept.deaths_before_ready >= _MAX_DEATHS else Health.DOWN
