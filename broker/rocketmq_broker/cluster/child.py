"""Runs a process of the cluster, restarts it when it ends, and stops it."""

import asyncio
import contextlib
import os
import re
import signal
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rocketmq_broker.message.text.printable import printable
from rocketmq_broker.world import World

MAX_RESTARTS: Final = 10
"""The maximum number of consecutive restarts. If the process ends again after these restarts, it is not restarted."""
STEADY_LIFE_S: Final = 60.0
"""The running time in seconds after which a process counts as stable. Its number of consecutive restarts is then reset to 0."""
BAD_SETTINGS: Final = 2
"""The exit status of a process with invalid settings, which a restart would not fix."""
_FIRST_PAUSE_S: Final = 0.5
_MAX_PAUSE_S: Final = 30.0
_STOPS_WITHIN_S: Final = 10.0
"""The time in seconds that a process has to end after SIGTERM. After this time, it is killed with SIGKILL."""
_LAST_LINES_WITHIN_S: Final = 1.0
_MAX_LINE_LENGTH: Final = 1024 * 1024
_READY: Final = re.compile(r"^The (?:broker\[.+, (?P<address>\S+)\]|Name Server) boot success\.")


@dataclass(slots=True)
class Restarts:
    """Counts the restarts of one process."""

    in_a_row: int = 0

    def pause_s(self, status: int, lived_s: float) -> float | None:
        """Returns the seconds to wait before the next start, or None if the process must not be restarted.

        `status` is the exit status, negative for a signal. The process is restarted after each status except 2. Status 3 means
        that a disk failure damaged the store. The next start then recovers the store, or reports why this is impossible.
        """
        if lived_s >= STEADY_LIFE_S:
            self.in_a_row = 0
        if status == BAD_SETTINGS or self.in_a_row >= MAX_RESTARTS:
            return None
        self.in_a_row += 1
        return float(min(_FIRST_PAUSE_S * 2 ** (self.in_a_row - 1), _MAX_PAUSE_S))


def ending_text(status: int) -> str:
    """Returns a text that describes how a process ended. `status` is its exit status, negative for a signal."""
    if status < 0:
        return f"was killed by {_signal_name(-status)}"
    if status == 0:
        return "ended normally (exit status 0)"
    return f"ended with exit status {status}"


class Child:
    """A process that is restarted under the same name when it ends. `run` keeps it running until `stop` is called."""

    def __init__(self, name: str, arguments: Sequence[str], report: Callable[[str, str], None], world: World) -> None:
        """Creates the child without starting its process.

        `report` is called for each line of output with its source and its text. The source is the name of a process or `cluster`.
        """
        self.name = name
        self.address: str | None = None
        """The address on which the process accepts connections; None unless it is ready."""
        self.ready = asyncio.Event()
        """Set when the process is ready for the first time."""
        self.died = asyncio.Event()
        """Set when the process ends for the first time without a call of `stop`."""
        self._arguments = list(arguments)
        self._report = report
        self._world = world
        self._restarts = Restarts()
        self._process: Process | None = None
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Restarts the process each time it ends.

        Returns after `stop` is called, or when the process must not be restarted.
        """
        while not self._stopping.is_set():
            started_s = self._world.steady_s()
            status = await self._run_once()
            if self._stopping.is_set():
                return
            self.died.set()
            pause_s = self._restarts.pause_s(status, self._world.steady_s() - started_s)
            ended = f"{self.name} {ending_text(status)}"
            if pause_s is None:
                self._give_up(ended, status)
                return
            self._report("cluster", f"{ended}; restart {self._restarts.in_a_row} of {MAX_RESTARTS} in {pause_s:g} s")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._stopping.wait()

    async def stop(self) -> None:
        """Sends SIGTERM to the process, and SIGKILL if it has not ended after 10 s. `run` then returns."""
        self._stopping.set()
        process = self._process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(_STOPS_WITHIN_S):
                await process.wait()
        except TimeoutError:
            self._report(
                "cluster",
                f"{self.name} did not end within {_STOPS_WITHIN_S:g} s of SIGTERM: it is killed and recovers at its next start",
            )
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _run_once(self) -> int:
        """Starts the process and waits until it ends. Returns its exit status."""
        read_end, write_end = os.pipe()  # no child inherits the write end: it closes with this process, and `member` notices
        try:
            # A new session: Ctrl-C reaches only the supervisor, which stops its children in order.
            self._process = process = await asyncio.create_subprocess_exec(
                *self._arguments,
                stdout=PIPE,
                stderr=STDOUT,
                stdin=read_end,
                start_new_session=True,
                limit=_MAX_LINE_LENGTH,
            )
            assert process.stdout is not None
            reading = asyncio.create_task(self._read_lines(process.stdout), name=f"lines of {self.name}")
            if self._stopping.is_set():
                process.terminate()
            status = await process.wait()
        finally:
            os.close(read_end)
            os.close(write_end)
        self.address = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_LINES_WITHIN_S):
                await reading
        return status

    async def _read_lines(self, output: asyncio.StreamReader) -> None:
        while True:
            try:
                line = await output.readline()
            except ValueError:
                self._report(self.name, f"(a line of more than {_MAX_LINE_LENGTH} bytes)")
                continue
            if not line:
                return
            text = printable(line.decode(errors="replace").rstrip("\n"))
            self._report(self.name, text)
            if found := _READY.match(text):
                self.address = found["address"]
                self.ready.set()

    def _give_up(self, ended: str, status: int) -> None:
        why = "its settings are invalid" if status == BAD_SETTINGS else f"{MAX_RESTARTS} restarts in a row failed"
        self._report(
            "cluster", f"{ended} and is not restarted: {why}. Its store is unchanged; fix the cause and restart the cluster"
        )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
