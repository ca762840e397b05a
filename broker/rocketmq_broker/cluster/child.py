"""A process of the cluster: started, started again when it dies, told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import Callable, Sequence
from typing import Final

from rocketmq_broker.cluster.orphans import end_with
from rocketmq_broker.cluster.restarts import BAD_SETTINGS, MAX_RESTARTS, Restarts, ending_text
from rocketmq_broker.message.text.printable import printable
from rocketmq_broker.world import World

_STOPS_WITHIN_S: Final = 10.0
"""Time to end by itself after SIGTERM; then SIGKILL follows."""
_LAST_LINES_WITHIN_S: Final = 1.0
_MAX_LINE_LENGTH: Final = 1024 * 1024
_READY: Final = re.compile(r"^The (?:broker\[.+, (?P<address>\S+)\]|Name Server) boot success\.")


class Child:
    """One process under its name, and its successors. `run` keeps it running until `stop`."""

    def __init__(self, name: str, arguments: Sequence[str], say: Callable[[str, str], None], world: World) -> None:
        """Starts nothing. `say` gets each line: the name of the process that it comes from, or `cluster`, and the text."""
        self.name = name
        self.address: str | None = None
        """The address that it serves, of its latest start; None until it is ready, and after its end."""
        self.ready = asyncio.Event()
        """Set when it was ready first."""
        self.died = asyncio.Event()
        """Set when it ended unasked first."""
        self.is_given_up = False
        self._arguments = list(arguments)
        self._say = say
        self._world = world
        self._restarts = Restarts()
        self._process: Process | None = None
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Keeps it running until `stop`, or until it is given up."""
        while not self._stopping.is_set():
            started_s = self._world.steady_s()
            status = await self._run_once()
            if self._stopping.is_set():
                return
            self.died.set()
            pause_s = self._restarts.pause_s(status, self._world.steady_s() - started_s)
            ended = f"{self.name} {ending_text(status, _signal_name(status))}"
            if pause_s is None:
                self._give_up(ended, status)
                return
            self._say("cluster", f"{ended}; it is started again in {pause_s:g} s ({self._restarts.in_a_row} of {MAX_RESTARTS})")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._stopping.wait()

    async def stop(self) -> None:
        """Ends it by SIGTERM, or by SIGKILL if it does not end within 10 s. `run` then returns."""
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
            self._say(
                "cluster", f"{self.name} did not end within {_STOPS_WITHIN_S:g} s of SIGTERM: it is killed, and recovers later"
            )
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _run_once(self) -> int:
        """Starts it and returns its exit status when it has ended."""
        # A session of its own: Ctrl-C reaches the supervisor alone, which stops its children in their order.
        self._process = process = await asyncio.create_subprocess_exec(
            *self._arguments,
            stdout=PIPE,
            stderr=STDOUT,
            stdin=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=end_with(self._world.process_id()),
            limit=_MAX_LINE_LENGTH,
        )
        assert process.stdout is not None
        telling = asyncio.create_task(self._tell(process.stdout), name=f"lines of {self.name}")
        if self._stopping.is_set():
            process.terminate()
        status = await process.wait()
        self.address = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_LINES_WITHIN_S):
                await telling
        return status

    async def _tell(self, output: asyncio.StreamReader) -> None:
        while True:
            try:
                line = await output.readline()
            except ValueError:
                self._say(self.name, f"(a line of more than {_MAX_LINE_LENGTH} bytes)")
                continue
            if not line:
                return
            text = printable(line.decode(errors="replace").rstrip("\n"))
            self._say(self.name, text)
            if found := _READY.match(text):
                self.address = found["address"]
                self.ready.set()

    def _give_up(self, ended: str, status: int) -> None:
        self.is_given_up = True
        why = "its settings are wrong" if status == BAD_SETTINGS else f"{MAX_RESTARTS} restarts in a row did not help"
        self._say(
            "cluster", f"{ended}; it is given up: {why}. Its store is untouched; mend the cause and start the cluster again"
        )


def _signal_name(status: int) -> str:
    try:
        return signal.Signals(-status).name if status < 0 else ""
    except ValueError:
        return ""
