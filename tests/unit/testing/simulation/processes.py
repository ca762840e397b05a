"""Processes of a simulated world without network and disk."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from rocketmq_broker.remoting.network import TcpNetwork
from rocketmq_broker.testing.simulation.history import History
from rocketmq_broker.testing.simulation.loop import SimulatedLoop
from rocketmq_broker.testing.simulation.process import SimulatedProcess, WallClock

STARTS_MS = 1_767_225_600_000

T = TypeVar("T")


class Alone:
    """A loop with processes that cannot reach each other."""

    def __init__(self, seed: int = 1) -> None:
        self.loop = SimulatedLoop()
        self.history = History(self.loop.elapsed_ns)
        self.seed = seed
        self._processes: list[SimulatedProcess] = []

    @property
    def now_s(self) -> float:
        return self.loop.elapsed_ns() / 1e9

    def process(self, name: str = "one") -> SimulatedProcess:
        process = SimulatedProcess(
            name, "10.0.0.1", loop=self.loop, history=self.history, seed=self.seed, number=len(self._processes) + 1,
            clock=WallClock(self.loop, STARTS_MS), network=lambda process: TcpNetwork(),
        )  # fmt: skip
        self._processes.append(process)
        return process

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        asyncio.set_event_loop(self.loop)
        try:
            return self.loop.run_until_complete(work)
        finally:
            for process in self._processes:
                process.clear()
            self.loop.clear()
            asyncio.set_event_loop(None)
