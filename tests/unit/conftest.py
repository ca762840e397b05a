"""Unit tests are pure: they use bytes, values and given times, and write at most to their own folder.

A test fails here if it starts a program, opens a socket or a database, sleeps, or writes elsewhere. It belongs in
tests/component.
"""

import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

ROOT = Path(__file__).parents[2]

IMPURE: Final = {
    "subprocess.Popen": "starts a program",
    "os.posix_spawn": "starts a program",
    "os.exec": "starts a program",
    "os.system": "starts a program",
    "os.fork": "starts a process",
    "os.forkpty": "starts a process",
    "socket.connect": "opens a connection",
    "socket.bind": "opens a socket",
    "socket.sendto": "sends to a socket",
    "sqlite3.connect": "opens a database",
}
"""Audit events (https://docs.python.org/3/library/audit_events.html) and what a test did that raised one."""

OWN_FOLDERS: Final = (tempfile.gettempdir(), "/dev/", str(ROOT / ".hypothesis"), str(ROOT / ".pytest_cache"))
"""Below these a test may write; bytecode is written anywhere."""
BYTECODE: Final = "__pycache__" if sys.pycache_prefix is None else sys.pycache_prefix


class _Deeds:
    """The impure actions of the running test.

    Python never removes an audit hook, so the process has one hook, which records only while a test runs.
    """

    def __init__(self) -> None:
        self._is_listening = False
        self._seen: dict[str, str] = {}
        self._others: set[int | None] = set()

    def begin(self) -> None:
        self._seen = {}
        self._others = {thread.ident for thread in threading.enumerate()} - {threading.get_ident()}
        """Threads that earlier tests left behind, as Spark's: what they do is none of this test's deeds."""
        self._is_listening = True

    def end(self) -> list[str]:
        """Stops recording. Returns each action with its audit event."""
        self._is_listening = False
        return [f"{deed}: {event}" for deed, event in self._seen.items()]

    def note(self, deed: str, event: str) -> None:
        if self._is_listening and threading.get_ident() not in self._others:
            self._seen.setdefault(deed, event)

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Records an impure action. Python calls this audit hook."""
        if not self._is_listening:
            return
        if deed := IMPURE.get(event):
            if "socketpair" in sys._getframe(1).f_code.co_name:
                return  # Windows has none: Python connects two sockets, by which an event loop wakes itself
            self.note(deed, f"{event} {arguments!r:.160}")
        elif event == "open" and _is_written_elsewhere(*arguments):
            self.note("writes a file outside its own folder", str(arguments[0]))


def _is_written_elsewhere(path: object, mode: str | None, _flags: int) -> bool:
    """Returns whether `path` names a file that is opened for writing outside OWN_FOLDERS."""
    if mode is None or not isinstance(path, str | bytes) or not set(mode) & set("wax+"):
        return False
    name = path.decode(errors="replace") if isinstance(path, bytes) else path
    return not name.startswith(OWN_FOLDERS) and BYTECODE not in name


_deeds = _Deeds()
sys.addaudithook(_deeds.hear)


@pytest.fixture(autouse=True, scope="session")
def _sleep_is_noted() -> Iterator[None]:
    """Replaces `time.sleep`, because Python has no audit event for a sleep."""
    sleep = time.sleep

    def noted(seconds: float) -> None:
        _deeds.note("sleeps", f"{seconds} s")
        sleep(seconds)

    time.sleep = noted
    yield
    time.sleep = sleep


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Iterator[None]:
    """Starts recording, so that the actions of fixtures count as actions of the test."""
    _deeds.begin()
    yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fails a test that was not pure."""
    try:
        yield
    finally:
        deeds = _deeds.end()
    if deeds:
        told = "\n  ".join(deeds)
        pytest.fail(f"{item.nodeid} is no unit test; move it to tests/component. It\n  {told}", pytrace=False)
