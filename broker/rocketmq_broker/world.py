"""Everything that differs from one run to the next: time, chance, and what the process and the machine are called.

Broker, name server and client read no clock, draw no random number and ask for no process id but here, or by the event loop
(`loop.time()`, `call_later`, `asyncio.sleep`). So a test can put a world of its own in the place of the real one, and a run can
be repeated to the byte. The other two things from outside have ports of their own: files
`rocketmq_broker.store.files.FileSystem`, connections `rocketmq_broker.remoting.network.Network`.

An object takes what it needs from `current_world()` when it is made, and keeps it: nothing is looked up for each message.
"""

from __future__ import annotations

import os
import random
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

Chance: TypeAlias = random.Random
"""Draws random numbers: in a test those of a seed."""


def address_of_this_machine() -> str:
    """The IPv4 address others know this machine by; 127.0.0.1 where there is no network. Sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # TEST-NET-1: only asks which way packets would leave
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


class Watch(Protocol):
    """Knows which threads work for an event loop, and lets them wait by its time."""

    def work_begins(self) -> None:
        """A thread has something to do, whose result will come to the event loop. Called there."""

    def work_ends(self) -> None:
        """The result is there. Called on the event loop."""

    def pause(self, wait: Callable[[float | None], bool], seconds: float | None) -> bool:
        """Waits in a thread for so many seconds of the event loop, or until `wait`, given real seconds, returns True."""


@dataclass(frozen=True, slots=True)
class World:
    """The real one, unless told otherwise. All of it may be called from any thread."""

    wall_ns: Callable[[], int] = time.time_ns
    """Nanoseconds since the epoch."""
    steady_ns: Callable[[], int] = time.monotonic_ns
    """Nanoseconds since some moment or other; they never go back."""
    sleep: Callable[[float], None] = time.sleep
    """Lets the calling thread wait for so many seconds."""
    random: Chance = field(default_factory=Chance)
    process_id: Callable[[], int] = os.getpid
    nonce: Callable[[int], bytes] = os.urandom
    """So many bytes that nobody else has."""
    host_name: Callable[[], str] = socket.gethostname
    local_address: Callable[[], str] = address_of_this_machine
    watch: Watch | None = None
    """Who must know of threads that listeners run in, if anybody must."""
    has_threads: bool = True
    """Whether listeners have threads. Without them a plain function runs on the event loop, where it cannot wait."""

    def wall_ms(self) -> int:
        """Milliseconds since the epoch."""
        return self.wall_ns() // 1_000_000

    def new_uuid(self) -> uuid.UUID:
        """Makes a random UUID."""
        return uuid.UUID(bytes=self.nonce(16), version=4)

    def steady_s(self) -> float:
        """Seconds since some moment or other."""
        return self.steady_ns() / 1_000_000_000


_current: ContextVar[World] = ContextVar("world", default=World())  # noqa: B039 (a frozen value)


def current_world() -> World:
    """The world of whoever calls: the real one, or the one that `in_world` was entered with. Tasks and timers inherit it."""
    return _current.get()


@contextmanager
def in_world(world: World) -> Iterator[None]:
    """What is made inside lives in that world, for good."""
    token = _current.set(world)
    try:
        yield
    finally:
        _current.reset(token)
