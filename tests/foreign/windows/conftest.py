"""Fixtures for CPython for Windows under Wine, with the libraries of the broker and of its tests."""

import os
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

from demo.processes import PROJECT_ROOT
from deploy.scripts.pinned import locked_versions
from tests.foreign.package.environments import set_up

SETUP: Final = Path(__file__).with_name("windows-python")
PROGRAMS: Final = Path(__file__).with_name("programs")
FOLDER: Final = PROJECT_ROOT / "build" / "windows"
BROKER: Final = ("msgspec", "librt", "isal", "typer", "rich", "prometheus-client", "pyyaml")
TOOLS: Final = ("pytest", "pytest-asyncio", "pytest-timeout", "hypothesis", "greenlet", "httpx")
DATABASES: Final = ("sqlalchemy", "alembic", "aiosqlite", "django")
FULL_DISK: Final = "diskSpaceWarningLevelRatio=95"  # Wine counts the space that only root may use as used
SOURCES: Final = ("", "broker", "packages/commitlog", "packages/faststream-rocketmq")


def windows_path(path: Path) -> str:
    """Converts a path to its Windows form, as a program under Wine needs it."""
    return "Z:" + str(path).replace("/", "\\")


class Windows:
    """A runner of programs under CPython for Windows."""

    def __init__(self, python: Path) -> None:
        self._python = python

    def start(self, *arguments: str | Path, cwd: Path, **environment: str) -> subprocess.Popen[str]:
        """Starts a program. Path arguments are converted to Windows paths."""
        path = ";".join(windows_path(PROJECT_ROOT / source) for source in SOURCES)
        return subprocess.Popen(
            [self._python, *(windows_path(it) if isinstance(it, Path) else it for it in arguments)],
            cwd=cwd,
            env={**os.environ, "WINDOWS_PATH": path, "CI": "1", **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
        )

    def run(self, *arguments: str | Path, cwd: Path, timeout_s: float = 600, **environment: str) -> str:
        """Runs a program, which must exit with status 0. Returns its output."""
        process = self.start(*arguments, cwd=cwd, **environment)
        output, _ = process.communicate(timeout=timeout_s)
        assert process.returncode == 0, f"status {process.returncode}\n{output[-8000:]}"
        return output


class WindowsBroker:
    """A broker under Windows, which tests can interrupt or kill."""

    def __init__(self, process: subprocess.Popen[str], control: socket.socket) -> None:
        self._process = process
        self._control = control
        self.lines: list[str] = []

    def until_ready(self) -> None:
        """Waits until the broker is ready."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line)
            if "boot success" in line:
                return
        pytest.fail("the broker ended:\n" + "".join(self.lines))

    def interrupt(self) -> int:
        """Sends Ctrl-C. Returns the exit status."""
        return self._end(b"ctrl-c\n")

    def kill(self) -> int:
        """Calls TerminateProcess. Returns the exit status."""
        return self._end(b"terminate\n")

    def _end(self, how: bytes) -> int:
        self._control.sendall(how)
        output, _ = self._process.communicate(timeout=120)
        self.lines += output.splitlines(keepends=True)
        return self._process.returncode


Program = TypeVar("Program", bound="subprocess.Popen[Any]")


def connected(start: Callable[[int], Program]) -> tuple[Program, socket.socket]:
    """Starts a program that connects to the port passed to `start`. Returns the program and the connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(120)
        process = start(listening.getsockname()[1])
        try:
            connection, _ = listening.accept()
        except TimeoutError:
            process.kill()
            raise
    return process, connection


@contextmanager
def wine_services() -> Iterator[None]:
    """Keeps a Wine program running during the block. It ends when its connection closes.

    The first program under Wine starts Wine's services, which hold its output open and run as long as any program does.
    """
    waiting = "import socket; socket.create_connection(('127.0.0.1', {})).recv(1)"
    quiet = subprocess.DEVNULL
    process, connection = connected(
        lambda port: subprocess.Popen([FOLDER / "python", "-c", waiting.format(port)], stdin=quiet, stdout=quiet, stderr=quiet)
    )
    with process, connection:
        yield


@pytest.fixture(scope="session")
def windows() -> Iterator[Windows]:
    """Yields a runner of programs. Skips the test if Wine or CPython for Windows is not available."""
    versions = locked_versions(PROJECT_ROOT / "requirements.lock")
    set_up(SETUP, FOLDER, *(f"{name}=={versions[name]}" for name in (*BROKER, *DATABASES, *TOOLS)))
    with wine_services():
        yield Windows(FOLDER / "python")


@contextmanager
def windows_broker(windows: Windows, conf: Path) -> Iterator[WindowsBroker]:
    """Runs a broker with these settings. Yields it once it is ready."""
    program = PROGRAMS / "controlled_broker.py"
    process, control = connected(lambda port: windows.start("-u", program, str(port), conf, cwd=conf.parent))
    broker = WindowsBroker(process, control)
    try:
        broker.until_ready()
        yield broker
    finally:
        if process.poll() is None:
            control.close()  # which ends the program
            process.communicate(timeout=60)


def conf_of(store: Path, name: str, *, ports: Sequence[int] = (0, 0)) -> Path:
    """Writes the settings of a broker with this store. Returns the file."""
    conf = store.parent / f"{name}.conf"
    root = windows_path(store).replace("\\", "\\\\")
    conf.write_text(f"listenPort={ports[0]}\nnamesrvListenPort={ports[1]}\nstorePathRootDir={root}\n{FULL_DISK}\n")
    return conf
