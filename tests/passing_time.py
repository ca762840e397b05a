"""Time that a test sets: the wall clock of a `World`, a clock in seconds, and the time of an event loop."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from rocketmq_broker.testing.virtual_time import VirtualTime
from rocketmq_broker.world import World

T = TypeVar("T")


@dataclass(slots=True)
class Clock:
    """A clock that advances only when the test calls `pass_s`."""

    now_ms: int = 1_800_000_000_000

    def pass_s(self, seconds: float) -> None:
        self.now_ms += int(seconds * 1000)

    def world(self) -> World:
        return World(wall_ns=lambda: self.now_ms * 1_000_000)


@dataclass(slots=True)
class SteadyClock:
    """A clock whose seconds a test sets. Calling it returns them."""

    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


def in_virtual_time(work: Callable[[VirtualTime], Awaitable[T]]) -> T:
    """Runs the work on a new event loop in virtual time. Returns its result."""
    virtual = VirtualTime(0)

    async def begin() -> T:
        return await work(virtual)

    with asyncio.Runner(loop_factory=virtual.new_loop) as runner:
        return runner.run(begin())
