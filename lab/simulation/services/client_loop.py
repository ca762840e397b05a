"""Runs a client's coroutines on the world's event loop, while threads of the process wait in the world's time."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from rocketmq_broker.testing.simulation.process import SimulatedProcess

T = TypeVar("T")


class SimulatedClientLoop:
    """Runs coroutines for the threads of a process (`service_runtime.messaging.client_loop.ClientLoop`)."""

    def __init__(self, process: SimulatedProcess) -> None:
        """`process` is the process whose threads call `run`."""
        self._process = process

    def start(self) -> None:
        """Does nothing, because the world's loop runs."""

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Runs a coroutine and returns its result. Cancels it after `timeout_s` and raises TimeoutError."""
        return self._process.run_and_wait(work, timeout_s)

    def stop(self) -> None:
        """Does nothing, because the world ends its loop."""
