"""Everything that differs between two runs: time, chance, and the names of process and machine.

Broker, name server, clients and services read the clock, draw random numbers and ask for the process id only here; broker and
clients also live by the event loop (`loop.time()`, `call_later`, `asyncio.sleep`). So a test can replace the real world, and a
run can be repeated byte for byte. Two other things from outside have their own ports: files
`rocketmq_broker.store.files.FileSystem`, connections `rocketmq_broker.remoting.network.Network`.

Only roots ask for `current_world()`: what a process or a program makes first. They hand in what other objects need, which keep
it: no message costs a look-up.
"""

from __future__ import annotations

import os
import random
import socket
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

Chance: TypeAlias = random.Random
"""A source of random numbers, in a test with a seed."""
RunFunction: TypeAlias = Callable[[Callable[[], Any]], Coroutine[Any, Any, Any]]
"""Runs a function, and returns its result."""
RunCoroutine: TypeAlias = Callable[[Coroutine[Any, Any, Any], float | None], Any]
"""Runs a coroutine for a thread that waits for its result, at most for those seconds."""


def address_of_this_machine() -> str:
    """Returns the IPv4 address by which others reach this machine; 127.0.0.1 without a network. Sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # TEST-NET-1: only asks which way packets would leave
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


class Watch(Protocol):
    """The port by which threads that work for an event loop are known, and wait by its time."""

    def work_begins(self) -> None:
        """Notes that a thread begins work whose result the event loop gets. Called on the event loop."""

    def work_ends(self) -> None:
        """Notes that the event loop has the result. Called on the event loop."""

    def pause(self, wait: Callable[[float | None], bool], seconds: float | None) -> bool:
        """Waits in a thread for `seconds` of the event loop's time, or until `wait`, called with real seconds, returns True."""


@dataclass(frozen=True, slots=True)
class World:
    """The sources of time, chance and identity; by default the real ones. All of them may be called from any thread."""

    wall_ns: Callable[[], int] = time.time_ns
    """Nanoseconds since the epoch."""
    steady_ns: Callable[[], int] = time.monotonic_ns
    """Nanoseconds since an arbitrary moment; they never go back."""
    sleep: Callable[[float], None] = time.sleep
    """Makes the calling thread wait for that many seconds."""
    random: Chance = field(default_factory=Chance)
    process_id: Callable[[], int] = os.getpid
    nonce: Callable[[int], bytes] = os.urandom
    """Returns that many bytes that nobody else has."""
    host_name: Callable[[], str] = socket.gethostname
    local_address: Callable[[], str] = address_of_this_machine
    watch: Watch | None = None
    """The watch that must know of the threads in which listeners run; None if there is none."""
    run_function: RunFunction | None = None
    """Runs a listener that is a plain function, in a world without threads; None where listeners have threads."""
    acquire: Callable[[Callable[[], bool], float], bool] | None = None
    """Waits until the function, which tries to take a lock, returns True, in a world without threads; at most for those
    seconds. None where a lock itself can wait."""
    run_coroutine: RunCoroutine | None = None
    """Runs a coroutine on the world's only event loop for a thread that waits, in a world without threads. None where an event
    loop has a thread of its own."""

    def wall_ms(self) -> int:
        """Returns milliseconds since the epoch."""
        return self.wall_ns() // 1_000_000

    def new_uuid(self) -> uuid.UUID:
        """Returns a random UUID."""
        return uuid.UUID(bytes=self.nonce(16), version=4)

    def steady_s(self) -> float:
        """Returns seconds since an arbitrary moment."""
        return self.steady_ns() / 1_000_000_000


_current: ContextVar[World] = ContextVar("world", default=World())  # noqa: B039 (a frozen value)


def current_world() -> World:
    """Returns the caller's world: the real one, or the one of the enclosing `in_world`. Tasks and timers inherit it."""
    return _current.get()


@contextmanager
def in_world(world: World) -> Iterator[None]:
    """Makes `world` the current one inside the block. Objects that are made inside keep it."""
    token = _current.set(world)
    try:
        yield
    finally:
        _current.reset(token)


def live_in(world: World) -> None:
    """Makes `world` the current one for the rest of the caller's context."""
    _current.set(world)
