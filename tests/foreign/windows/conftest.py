"""A CPython for Windows, run by Wine, with the libraries of the broker and of its tests."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from demo.processes import PROJECT_ROOT
from tests.one_at_a_time import one_at_a_time

SETUP: Final = Path(__file__).with_name("windows-python")
PROGRAMS: Final = Path(__file__).with_name("programs")
FOLDER: Final = PROJECT_ROOT / "build" / "windows"
UNAVAILABLE: Final = 69
BROKER: Final = ("msgspec", "librt", "isal", "typer", "rich", "prometheus-client", "pyyaml")
CONSOLE: Final = ("starlette", "uvicorn", "jinja2", "python-multipart", "itsdangerous")
TOOLS: Final = ("pytest", "pytest-asyncio", "pytest-timeout", "hypothesis", "greenlet", "httpx")
DATABASES: Final = ("sqlalchemy", "alembic", "aiosqlite", "django")
FULL_DISK: Final = "diskSpaceWarningLevelRatio=95"  # Wine counts the space that only root may use as used
SOURCES: Final = ("", "broker", "packages/commitlog", "packages/faststream-rocketmq")


def windows_path(path: Path) -> str:
    """The path as a program under Wine sees it."""
    return "Z:" + str(path).replace("/", "\\")


class Windows:
    """The Python for Windows."""

    def __init__(self, python: Path) -> None:
        self._python = python

    def start(self, *arguments: str | Path, cwd: Path, **environment: str) -> subprocess.Popen[str]:
        """Starts a program. Paths among its arguments are passed as Windows' paths."""
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
        """Runs a program that must end with status 0. Returns what it printed."""
        process = self.start(*arguments, cwd=cwd, **environment)
        output, _ = process.communicate(timeout=timeout_s)
        assert process.returncode == 0, f"status {process.returncode}\n{output[-8000:]}"
        return output


class WindowsBroker:
    """A broker under Windows, which the test can interrupt or kill."""

    def __init__(self, process: subprocess.Popen[str], control: socket.socket) -> None:
        self._process = process
        self._control = control
        self.lines: list[str] = []

    def until_ready(self) -> None:
        """Waits until the broker serves."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line)
            if "boot success" in line:
                return
        pytest.fail("the broker ended:\n" + "".join(self.lines))

    def interrupt(self) -> int:
        """What Ctrl-C does. Returns the exit status."""
        return self._end(b"ctrl-c\n")

    def kill(self) -> int:
        """TerminateProcess. Returns the exit status."""
        return self._end(b"terminate\n")

    def _end(self, how: bytes) -> int:
        self._control.sendall(how)
        output, _ = self._process.communicate(timeout=120)
        self.lines += output.splitlines(keepends=True)
        return self._process.returncode


@contextmanager
def wine_services(port: int) -> Iterator[None]:
    """Keeps a program running, which ends with its connection to this port.

    The first program of a Wine starts its services, which keep its output open and run as long as any program does.
    """
    waiting = f"import socket; socket.create_connection(('127.0.0.1', {port})).recv(1)"
    quiet = subprocess.DEVNULL
    with subprocess.Popen([FOLDER / "python", "-c", waiting], stdin=quiet, stdout=quiet, stderr=quiet):
        yield


@pytest.fixture(scope="session")
def windows() -> Iterator[Windows]:
    """Skips the test where Wine or CPython for Windows cannot be had."""
    versions = dict(re.findall(r"^([\w.-]+)(?:\[[\w,.-]+\])?(==\S+)", (PROJECT_ROOT / "requirements.lock").read_text(), re.M))
    wanted = [f"{name}{versions[name]}" for name in (*BROKER, *CONSOLE, *DATABASES, *TOOLS)]
    with one_at_a_time("python for windows"):
        done = subprocess.run([SETUP, FOLDER, *wanted], capture_output=True, text=True, timeout=1200, check=False)
    if done.returncode == UNAVAILABLE:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr[-4000:]
    with socket.create_server(("127.0.0.1", 0)) as listening, wine_services(listening.getsockname()[1]):
        listening.settimeout(120)
        held, _ = listening.accept()
        with held:
            yield Windows(FOLDER / "python")


@contextmanager
def windows_broker(windows: Windows, conf: Path) -> Iterator[WindowsBroker]:
    """A broker with these settings, which serves."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(120)
        port = str(listening.getsockname()[1])
        process = windows.start("-u", PROGRAMS / "controlled_broker.py", port, conf, cwd=conf.parent)
        try:
            control, _ = listening.accept()
        except TimeoutError:
            process.kill()
            raise
    broker = WindowsBroker(process, control)
    try:
        broker.until_ready()
        yield broker
    finally:
        if process.poll() is None:
            control.close()  # which ends the program
            process.communicate(timeout=60)


def conf_of(store: Path, name: str, *, ports: Sequence[int] = (0, 0)) -> Path:
    """Writes the settings of a broker on this store."""
    conf = store.parent / f"{name}.conf"
    root = windows_path(store).replace("\\", "\\\\")
    conf.write_text(f"listenPort={ports[0]}\nnamesrvListenPort={ports[1]}\nstorePathRootDir={root}\n{FULL_DISK}\n")
    return conf
