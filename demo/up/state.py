"""Ensures that only one `make up` uses a folder, by means of a lock and a file that describes the running processes."""

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
    """The description of a running `make up`."""

    pid: int
    address: str
    """The console's URL; empty while it starts."""
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Maps the names of the other parts to their URLs or addresses."""
    processes: Mapping[str, int] = field(default_factory=dict)
    """Maps the names of the running processes to their process ids."""


class RunsAlready(DemoError):
    """Raised if another `make up` uses the folder. The error message describes that process and how to stop it."""


class StateFile:
    """The lock and the state file of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / "running.json"
        self._lock: int | None = None

    def __enter__(self) -> Self:
        """Acquires the lock. Raises RunsAlready if the lock is held, or DemoError if the folder cannot be used."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder.chmod(0o700)  # A folder that an older version created may be readable by everyone.
            lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise DemoError(f"cannot use the folder {self._folder}: {error.strerror}") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise RunsAlready(description(read_state(self._path), self._folder)) from None
        self._lock = lock
        self._path.unlink(missing_ok=True)  # A killed process has left this file.
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Releases the lock."""
        assert self._lock is not None
        self._path.unlink(missing_ok=True)
        os.close(self._lock)

    def write(self, state: UpState) -> None:
        """Replaces the state atomically."""
        fresh = self._path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(asdict(state), file, indent=1)
        fresh.replace(self._path)


def read_state(path: Path) -> UpState | None:
    """Reads the state file. Returns None if it is missing or invalid."""
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


def description(state: UpState | None, folder: Path) -> str:
    """Returns a description of the running `make up`, and how to stop it."""
    if state is None:
        return f"another `make up` uses the folder {folder} and is starting or stopping. Wait a moment and try again"
    alive = [f"{name} ({pid})" for name, pid in state.processes.items() if psutil.pid_exists(pid)]
    lines = [
        f"`make up` is already running as process {state.pid}: {state.address or 'its console is starting'}",
        *(f"  {name}: {address}" for name, address in state.addresses.items()),
        *([f"  processes: {', '.join(alive)}"] if alive else []),
        f"Stop it with Ctrl-C in its terminal, or with: kill {state.pid}",
    ]
    return "\n".join(lines)
