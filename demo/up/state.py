"""One `make up` for a folder: a lock that ends with its process, and a file that describes the running processes."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from demo.errors import DemoError

_MAX_STATE_LENGTH = 64 * 1024


@dataclass(frozen=True, slots=True)
class UpState:
    """The statement of a running `make up` about itself."""

    pid: int
    address: str
    """Of the console; empty while it starts."""
    addresses: Mapping[str, str] = field(default_factory=dict)
    """By name: where else something listens."""
    processes: Mapping[str, int] = field(default_factory=dict)
    """Process ids by name."""


class RunsAlready(DemoError):
    """Another `make up` has the folder; the text names it, and how to end it."""


class StateFile:
    """The lock and the file, held during the block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / "running.json"
        self._lock: int | None = None

    def __enter__(self) -> Self:
        """Takes the lock. Raises RunsAlready, or DemoError if the folder cannot be used."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder.chmod(0o700)  # older content may be readable for everybody
            lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise DemoError(f"the folder {self._folder} cannot be used: {error.strerror}") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise RunsAlready(told(read_state(self._path), self._folder)) from None
        self._lock = lock
        self._path.unlink(missing_ok=True)  # left by a killed one
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Releases the lock."""
        assert self._lock is not None
        self._path.unlink(missing_ok=True)
        os.close(self._lock)

    def write(self, state: UpState) -> None:
        """Replaces the state; readers see the old or the new one."""
        fresh = self._path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(asdict(state), file, indent=1)
        fresh.replace(self._path)


def read_state(path: Path) -> UpState | None:
    """Reads the file; None if it is missing or invalid: each program with write access may have put anything into it."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)) as file:
            content = json.loads(file.read(_MAX_STATE_LENGTH))
        return UpState(
            int(content["pid"]),
            str(content["address"]),
            {str(name): str(address) for name, address in content["addresses"].items()},
            {str(name): int(pid) for name, pid in content["processes"].items()},
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def told(state: UpState | None, folder: Path) -> str:
    """Describes the running `make up`, and how to end it."""
    if state is None:
        return f"another `make up` has the folder {folder} and is about to start, or to end. Wait a moment and look again"
    alive = [f"{name} ({pid})" for name, pid in state.processes.items() if psutil.pid_exists(pid)]
    lines = [
        f"`make up` runs already, as process {state.pid}: {state.address or 'its console starts'}",
        *(f"  {name}: {address}" for name, address in state.addresses.items()),
        *([f"  processes: {', '.join(alive)}"] if alive else []),
        f"End it with Ctrl-C in its terminal, or with: kill {state.pid}",
    ]
    return "\n".join(lines)
