"""Manages the processes that run worlds in parallel."""

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import wait
from typing import Final

from rocketmq_broker.platform.processes import signals_blocked
from rocketmq_broker.testing.exploring.errors import UnusableTest
from rocketmq_broker.testing.exploring.search.player import PlayRequest, play_requests
from rocketmq_broker.testing.exploring.search.worlds import WorldEnd, Worlds
from rocketmq_broker.testing.simulation.databases.scratch import remove_scratch_of
from rocketmq_broker.testing.simulation.plan import Plan, UnreadablePlan

PATIENCE_S: Final = 600.0
"""The time limit of one world in real seconds."""
_STARTING_S: Final = 60.0
"""The time that a new process has to start and to draw a plan, even if a world has less time than that."""
_WORLDS_PER_PROCESS: Final = 2000
"""The number of worlds after which a process is replaced, to limit the effect of memory leaks."""
_LOOK_S: Final = 0.5


class _PlayingProcess:
    """A process, and the world that it is running."""

    def __init__(self, worlds: Worlds, environment: Mapping[str, str]) -> None:
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=play_requests, args=(theirs, worlds), daemon=True)
        _start(self._process.start, environment)
        theirs.close()
        self.request: PlayRequest | None = None
        self._begun_at_s = 0.0
        self.played = 0

    def begin(self, request: PlayRequest) -> None:
        """Starts a world."""
        self.request, self._begun_at_s = request, time.monotonic()
        with suppress(BrokenPipeError):  # the process has died, which its connection shows
            self.connection.send(request)

    def end_of_world(self) -> WorldEnd | None:
        """Returns the result of the world, or None if the process has exited. Raises UnusableTest and UnreadablePlan."""
        try:
            end: WorldEnd | UnusableTest | UnreadablePlan = self.connection.recv()
        except (EOFError, ConnectionResetError):
            return None
        if not isinstance(end, WorldEnd):
            raise end
        self.request = None
        self.played += 1
        return end

    def is_overdue(self, patience_s: float) -> bool:
        """Returns True if the world has exceeded the time limit."""
        return self.request is not None and time.monotonic() - self._begun_at_s > patience_s

    def kill(self) -> int | None:
        """Kills the process, removes its databases, and returns its exit code."""
        self._process.kill()
        self._process.join()
        remove_scratch_of(self._process.pid or 0)
        self.connection.close()
        return self._process.exitcode


class PlayingProcesses:
    """A pool of processes that run worlds. The processes end at the end of the `with` block."""

    def __init__(
        self,
        worlds: Worlds,
        count: int | None = None,
        *,
        patience_s: float = PATIENCE_S,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Creates the pool. `count` defaults to the number of CPUs.

        `environment` contains additional variables for the processes.
        """
        self.count = count or os.cpu_count() or 1
        self._worlds = worlds
        self._patience_s = patience_s
        self._environment = environment or {}
        self._all: list[_PlayingProcess] = []

    def __enter__(self) -> "PlayingProcesses":
        """Returns the pool. Each process starts when it gets its first world."""
        return self

    def __exit__(self, *error: object) -> None:
        """Ends all processes immediately."""
        for process in self._all:
            process.kill()
        self._all.clear()

    def play(self, plan: Plan | int, is_recorded: bool = False) -> WorldEnd:
        """Runs one world. `is_recorded` is whether the result contains the readable events."""
        (end,) = self.play_all([plan], is_recorded)
        return end

    def play_all(self, plans: Iterable[Plan | int], is_recorded: bool = False) -> Iterator[WorldEnd]:
        """Yields the result of each world as it finishes. Starts no world while the caller handles a result.

        If a process exits, or a world exceeds the time limit, the result is a violation of RUNS_TO_ITS_END. Raises UnusableTest
        if another process then cannot draw the plan of the world either.
        """
        waiting = iter(plans)
        for process in [process for process in self._all if process.request is not None]:
            self._end(process)  # an earlier caller stopped before this world had ended
        while True:
            while (free := self._free()) is not None and (plan := next(waiting, None)) is not None:
                free.begin(PlayRequest(plan, is_recorded))
            if not (busy := [process for process in self._all if process.request is not None]):
                return
            yield from self._ends(busy)

    def _free(self) -> _PlayingProcess | None:
        for process in [process for process in self._all if process.request is None and process.played >= _WORLDS_PER_PROCESS]:
            self._end(process)
        if (free := next((process for process in self._all if process.request is None), None)) is not None:
            return free
        if len(self._all) == self.count:
            return None
        self._all.append(_PlayingProcess(self._worlds, self._environment))
        return self._all[-1]

    def _ends(self, busy: list[_PlayingProcess]) -> Iterator[WorldEnd]:
        ready = wait([process.connection for process in busy], timeout=_LOOK_S)
        for process in [process for process in busy if process.connection in ready]:
            request = process.request
            end = process.end_of_world()
            if end is None and request is not None:
                end = self._unfinished(request, f"its process died: exit code {self._end(process)}")
            if end is not None:
                yield end
        for process in busy:
            if process in self._all and process.is_overdue(self._patience_s) and process.request is not None:
                request = process.request
                self._end(process)
                yield self._unfinished(request, f"it had no end after {self._patience_s:g} s")

    def _unfinished(self, request: PlayRequest, failure: str) -> WorldEnd:
        """Returns the result of a world that did not finish. Draws its plan in another process, which may end, too."""
        process = _PlayingProcess(self._worlds, self._environment)
        try:
            process.begin(request._replace(failure=failure))
            end = process.end_of_world() if wait([process.connection], timeout=max(self._patience_s, _STARTING_S)) else None
        finally:
            process.kill()
        if end is None:
            raise UnusableTest(f"{self._worlds.name} does not reach its call of world.run: {failure}")
        return end

    def _end(self, process: _PlayingProcess) -> int | None:
        self._all.remove(process)
        return process.kill()


def _start(start: Callable[[], None], environment: Mapping[str, str]) -> None:
    """Starts a process that ignores Ctrl-C, because the search itself ends its processes."""
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        with signals_blocked({signal.SIGINT}):
            start()
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
