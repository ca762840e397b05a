"""Clocks that a test sets: the wall clock of a `World`, and a clock in seconds."""

from dataclasses import dataclass

from rocketmq_broker.world import World


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
