"""Runs a client's coroutines on the simulation's event loop. Threads of the process wait for them in simulated time."""

from collections.abc import Coroutine
from typing import Any, TypeVar

from rocketmq_broker.testing.simulation.process import SimulatedProcess

T = TypeVar("T")


class SimulatedClientLoop:
    """Runs coroutines for the threads of a process (`service_runtime.messaging.client_loop.ClientLoop`)."""

    def __init__(self, process: SimulatedProcess) -> None:
        """Creates the loop for the threads of `process`."""
        self._process = process

    def start(self) -> None:
        """Does nothing, because the simulation's event loop is already running."""

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Runs a coroutine and returns its result. Cancels it after `timeout_s` and raises TimeoutError."""
        return self._process.run_and_wait(work, timeout_s)

    def stop(self) -> None:
        """Does nothing, because the simulation ends its event loop."""
