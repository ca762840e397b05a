"""A clock that a test sets, used as the wall clock of a `World`."""

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
