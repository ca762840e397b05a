"""Runs child processes of the tester. All of them end with the tester, even if the tester is killed."""

import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tutorials.build_your_own.tester.failed import Failed, Interrupted

_MARK: Final = "BUILD_YOUR_OWN_RUN"
_ROOT: Final = Path(__file__).resolve().parents[3]


class Children:
    """The child processes of the tester. Each child leads a process group, so that its descendants are killed with it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: dict[int, subprocess.Popen[bytes]] = {}
        self.is_stopping = False
        """True if no more processes may be started."""
        self._marks: dict[int, str] = {}
        """The mark of each child, keyed by process id.

        A mark is an environment variable that all descendants inherit. It finds descendants that have left the process group.
        """
        self._reaper: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        """Starts the reaper process, which kills the remaining processes if the tester is killed."""
        self._reaper = subprocess.Popen(
            [sys.executable, "-S", "-m", "demo.reaper"], cwd=_ROOT, stdin=subprocess.PIPE, text=True, start_new_session=True
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Kills all remaining processes."""
        self.stop()
        assert self._reaper is not None
        assert self._reaper.stdin is not None
        self._reaper.stdin.close()
        self._reaper.wait()

    def spawn(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
        """Starts a program and appends its output to the file `log`.

        Raises Failed if the program cannot be started, and Interrupted after `stop`.
        """
        with self._lock, log.open("ab") as output:
            if self.is_stopping:
                raise Interrupted
            try:
                mark = f"{_MARK}={uuid.uuid4()}"
                child = subprocess.Popen(
                    list(command),
                    env={**os.environ, "PYTHONUNBUFFERED": "1", _MARK: mark.partition("=")[2], **environment},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                raise Failed(
                    f"a program that can be started: {' '.join(command)}",
                    f"{error.strerror}: {error.filename}",
                    hint="Everything after -- is the command. Paths are relative to the tester's working directory.",
                ) from None
            self._groups[child.pid] = child
            self._marks[child.pid] = mark
            self._tell(f"+{child.pid}")
        return child

    def kill(self, child: subprocess.Popen[bytes]) -> None:
        """Kills a child and its descendants with SIGKILL."""
        with self._lock:
            self._kill(child)

    def stop(self) -> None:
        """Kills all processes. Later calls of `spawn` raise Interrupted."""
        with self._lock:
            self.is_stopping = True
            for child in list(self._groups.values()):
                self._kill(child)

    def _kill(self, child: subprocess.Popen[bytes]) -> None:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        for stray in _processes_with(self._marks.pop(child.pid, "")):
            with suppress(ProcessLookupError):
                os.kill(stray, signal.SIGKILL)
        if self._groups.pop(child.pid, None) is not None:
            self._tell(f"-{child.pid}")

    def _tell(self, text: str) -> None:
        assert self._reaper is not None
        assert self._reaper.stdin is not None
        print(text, file=self._reaper.stdin, flush=True)


def _processes_with(mark: str) -> Iterator[int]:
    """Yields the ids of the processes that have this mark in their initial environment.

    Yields nothing if the system has no /proc.
    """
    for environment in Path("/proc").glob("[0-9]*/environ") if mark else ():
        with suppress(OSError):
            if mark.encode() in environment.read_bytes().split(b"\0"):
                yield int(environment.parent.name)
