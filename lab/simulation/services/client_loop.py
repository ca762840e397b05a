"""The event loop of a broker's client in a simulated process: the world's, for which threads wait in virtual time."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from rocketmq_broker.testing.simulation.process import SimulatedProcess

T = TypeVar("T")


class SimulatedClientLoop:
    """Runs coroutines of a process for its threads (`service_runtime.messaging.client_loop.ClientLoop`)."""

    def __init__(self, process: SimulatedProcess) -> None:
        """`process` is the one whose threads call `run`."""
        self._process = process

    def start(self) -> None:
        """Does nothing: the world's loop runs."""

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Runs the coroutine, waits for its result, and raises its error. Cancels it after `timeout_s`; raises TimeoutError."""
        return self._process.run_and_wait(work, timeout_s)

    def stop(self) -> None:
        """Does nothing."""
