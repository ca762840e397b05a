"""Runs processes, each in its own process group and with a log file.

Processes can be killed and restarted. They are stopped when this program ends.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import httpx

from demo.asking import ask
from demo.errors import DemoError

PROJECT_ROOT = Path(__file__).resolve().parent.parent
_POLL_SECONDS = 0.1


class ProcessFailed(DemoError):
    """Raised if a process ended, or was not ready in time. The error message contains the end of its log."""


class Process:
    """A program that can be started repeatedly. Its output is appended to `log_path`."""

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        log_path: Path | None,
        is_ready: Callable[["Process"], bool],
        announce: Callable[[str], None],
        is_asked: bool = False,
    ) -> None:
        """Creates a process without starting it. Without `log_path` its output is printed.

        `announce` reports process groups to the reaper.

        `is_asked` is True for a program that reads requests from its standard input; see `ask`.
        """
        self.name = name
        self.log_path = log_path
        self.environment = dict(environment)
        self._arguments = list(arguments)
        self._is_ready = is_ready
        self._announce = announce
        self._stdin = subprocess.PIPE if is_asked else subprocess.DEVNULL
        self._popen: subprocess.Popen[bytes] | None = None
        self._log_position = 0
        self._groups: list[int] = []

    @property
    def pid(self) -> int:
        """The id of the process that was last started."""
        assert self._popen is not None, f"{self.name} was never started"
        return self._popen.pid

    @property
    def is_running(self) -> bool:
        """True if the process has been started and has not ended."""
        return self._popen is not None and self._popen.poll() is None

    @property
    def is_ready(self) -> bool:
        """True if the process is running and its readiness check passes."""
        return self.is_running and self._is_ready(self)

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs."""
        return None if self._popen is None else self._popen.poll()

    def output(self) -> str:
        """Returns the output since the last start; empty without a log."""
        if self.log_path is None:
            return ""
        with self.log_path.open("rb") as log:
            log.seek(self._log_position)
            return log.read().decode(errors="replace")

    def spawn(self) -> None:
        """Starts the process. Does not wait until it is ready."""
        assert not self.is_running, f"{self.name} is running"
        self._forget_groups(lambda group: not _has_members(group))
        with self._opened_log() as log:
            self._popen = subprocess.Popen(
                self._arguments,
                cwd=PROJECT_ROOT,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **self.environment},
                stdin=self._stdin,
                stdout=log,
                stderr=None if log is None else subprocess.STDOUT,
                start_new_session=True,
            )
        self._groups.append(self._popen.pid)
        self._announce(f"+{self._popen.pid}")

    def ask(self) -> None:
        """Sends an empty line to the process's standard input. Raises ProcessFailed if it has ended."""
        try:
            self._input().write(b"\n")
            self._input().flush()
        except BrokenPipeError:
            raise ProcessFailed(f"{self.name} has ended:\n{_tail(self.output())}") from None

    def end_input(self) -> None:
        """Closes the process's standard input."""
        self._input().close()

    def wait_until_ready(self, timeout_s: float = 60) -> None:
        """Waits until the process is ready. Raises ProcessFailed if the process ends, or after the timeout."""
        deadline = time.monotonic() + timeout_s
        while not self._is_ready(self):
            if not self.is_running:
                raise ProcessFailed(f"{self.name} ended with exit code {self.exit_code}:\n{_tail(self.output())}")
            if time.monotonic() > deadline:
                raise ProcessFailed(f"{self.name} is not ready after {timeout_s:g} s:\n{_tail(self.output())}")
            time.sleep(_POLL_SECONDS)

    def start(self, timeout_s: float = 60) -> None:
        """Starts the process and waits until it is ready. Raises ProcessFailed."""
        self.spawn()
        self.wait_until_ready(timeout_s)

    def wait(self, timeout_s: float) -> int:
        """Waits until the process ends, and returns its exit code. Raises ProcessFailed after the timeout."""
        assert self._popen is not None, f"{self.name} was never started"
        try:
            return self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise ProcessFailed(f"{self.name} is still running after {timeout_s:g} s:\n{_tail(self.output())}") from None

    def kill(self) -> None:
        """Kills the process with SIGKILL, as in a crash. Its children keep running."""
        if self._popen is not None and self.is_running:
            self._popen.kill()
            self._popen.wait()

    def begin_to_stop(self) -> None:
        """Sends SIGTERM without waiting."""
        if self._popen is not None and self.is_running:
            self._popen.terminate()

    def stop(self, timeout_s: float = 15) -> None:
        """Stops the process with SIGTERM, then kills the rest of its group with SIGKILL."""
        if self._popen is None:
            return
        if self.is_running:
            self.begin_to_stop()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(timeout_s)
        for group in self._groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        self._popen.wait()
        self._forget_groups(lambda group: True)

    def _input(self) -> IO[bytes]:
        assert self._popen is not None, f"{self.name} was never started"
        assert self._popen.stdin is not None, f"{self.name} reads no input"
        return self._popen.stdin

    @contextlib.contextmanager
    def _opened_log(self) -> Iterator[IO[bytes] | None]:
        if self.log_path is None:
            yield None
            return
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.log_path, "ab", opener=_private) as log:
            self._log_position = log.tell()
            yield log

    def _forget_groups(self, is_over: Callable[[int], bool]) -> None:
        """Removes the recorded groups of earlier starts that have ended, because the system may reuse their ids."""
        for group in filter(is_over, list(self._groups)):
            self._groups.remove(group)
            self._announce(f"-{group}")


class Processes:
    """A set of processes.

    They are stopped at the end of the block, by Ctrl-C, and when this program is killed (`demo.reaper`).
    """

    def __init__(self, log_folder: Path) -> None:
        """Creates an empty set. Each process will write its output to a file with its name in `log_folder`."""
        self._log_folder = log_folder
        self._processes: list[Process] = []
        self._reaper: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        """Starts the reaper."""
        self._reaper = subprocess.Popen(
            [sys.executable, "-m", "demo.reaper"], cwd=PROJECT_ROOT, stdin=subprocess.PIPE, text=True, start_new_session=True
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stops all processes, in the reverse order of their addition."""
        try:
            for process in reversed(self._processes):
                process.stop()
        finally:
            assert self._reaper is not None
            self._reaper_input().close()
            self._reaper.wait(timeout=10)

    def add(
        self,
        name: str,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        is_ready: Callable[[Process], bool] = lambda process: process.is_running,
        has_log: bool = True,
        is_asked: bool = False,
    ) -> Process:
        """Adds a process without starting it. If `has_log` is False, its output is printed on the screen."""
        process = Process(
            name,
            arguments,
            environment=environment or {},
            log_path=self._log_folder / f"{name}.log" if has_log else None,
            is_ready=is_ready,
            announce=self._announce,
            is_asked=is_asked,
        )
        self._processes.append(process)
        return process

    def logs(self) -> dict[str, str]:
        """Returns the end of each process's log, keyed by the process's name."""
        return {
            process.name: _tail(process.log_path.read_text(errors="replace"))
            for process in self._processes
            if process.log_path is not None and process.log_path.exists()
        }

    def _announce(self, text: str) -> None:
        print(text, file=self._reaper_input(), flush=True)

    def _reaper_input(self) -> IO[str]:
        assert self._reaper is not None
        assert self._reaper.stdin is not None
        return self._reaper.stdin


def prints(text: str) -> Callable[[Process], bool]:
    """Returns a readiness check that passes once the process has printed this text."""
    return lambda process: text in process.output()


def answers(url: str) -> Callable[[Process], bool]:
    """Returns a readiness check that passes once a GET request to the URL returns 200."""

    def is_ready(process: Process) -> bool:
        try:
            return ask("GET", url, timeout_s=2).status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    return is_ready


def accepts_connections(port: int) -> Callable[[Process], bool]:
    """Returns a readiness check that passes once a program listens on the port of the loopback address."""

    def is_ready(process: Process) -> bool:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            return False
        return True

    return is_ready


def _has_members(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _tail(text: str, lines: int = 60) -> str:
    return "\n".join(text.splitlines()[-lines:])


def _private(path: str, flags: int) -> int:
    """Opens a log file. Only this user can read it, because it may contain customer data."""
    return os.open(path, flags, 0o600)
