"""The sources of all values that differ between two runs: time, random numbers, process id and addresses.

Broker, name server, clients and services read the clock, random numbers and the process id only from this module. Broker and
clients also use the event loop's time (`loop.time()`, `call_later`, `asyncio.sleep`). A test can replace these sources, so
that a run can be repeated byte for byte. Files (`rocketmq_broker.store.files.FileSystem`) and connections
(`rocketmq_broker.remoting.network.Network`) have their own interfaces.

Only the objects that a program creates first call `current_world()`. They pass the required sources on to other objects.
"""

import itertools
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
"""A source of random numbers. Tests seed it."""
RunFunction: TypeAlias = Callable[[Callable[[], Any]], Coroutine[Any, Any, Any]]
"""Runs a function and returns its result."""
RunCoroutine: TypeAlias = Callable[[Coroutine[Any, Any, Any], float | None], Any]
"""Runs a coroutine for a thread that waits for its result, with a timeout in seconds or None."""


def address_of_this_machine() -> str:
    """Returns the IPv4 address of this machine, or 127.0.0.1 without a network. Sends no packets."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # TEST-NET-1: only selects a local address by the route
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


class Watch(Protocol):
    """Tracks threads that work for an event loop, and makes waits in these threads follow the event loop's clock."""

    def work_begins(self) -> None:
        """Records that a thread begins to work for the event loop. Called on the event loop."""

    def work_ends(self) -> None:
        """Records that the event loop has received a thread's result. Called on the event loop."""

    def pause(self, wait: Callable[[float | None], bool], seconds: float | None) -> bool:
        """Waits in a thread for `seconds` of the event loop's time, or until `wait` returns True.

        `wait` is called with a timeout in real seconds.
        """


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class World:
    """The sources of time, random numbers and identity. Any thread may call them. A world equals only itself.

    By default, the real sources are used.
    """

    wall_ns: Callable[[], int] = time.time_ns
    """Nanoseconds since the epoch."""
    steady_ns: Callable[[], int] = time.monotonic_ns
    """Nanoseconds since an arbitrary moment (monotonic)."""
    next_number: Callable[[], int] = field(default_factory=lambda: itertools.count().__next__)
    """Counts from 0. It tells apart what begins at one reading of the clock, which on Windows moves every 16 ms."""
    sleep: Callable[[float], None] = time.sleep
    """Blocks the calling thread for that many seconds."""
    random: Chance = field(default_factory=Chance)
    process_id: Callable[[], int] = os.getpid
    nonce: Callable[[int], bytes] = os.urandom
    """Returns that many unique random bytes."""
    host_name: Callable[[], str] = socket.gethostname
    local_address: Callable[[], str] = address_of_this_machine
    watch: Watch | None = None
    """Tracks the threads in which listeners run, or None."""
    run_function: RunFunction | None = None
    """Runs a listener that is a plain function in a simulated world without threads. None if listeners run in threads."""
    acquire: Callable[[Callable[[], bool], float], bool] | None = None
    """Acquires a lock and returns True, or returns False after a timeout in seconds.

    The first argument tries to acquire the lock without blocking, and is called until it returns True.

    Used in a simulated world without threads. None if locks can block.
    """
    run_coroutine: RunCoroutine | None = None
    """Runs a coroutine on the only event loop of a simulated world. None if event loops run in their own threads."""

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
    """Returns the world of the enclosing `in_world`, or the real world if there is none. Tasks and timers inherit the world."""
    return _current.get()


@contextmanager
def in_world(world: World) -> Iterator[None]:
    """Makes `world` the current world inside the block. Objects created inside the block keep using it."""
    token = _current.set(world)
    try:
        yield
    finally:
        _current.reset(token)


def live_in(world: World) -> None:
    """Makes `world` the current world in the rest of the caller's context."""
    _current.set(world)
