"""The port to the event loop of a broker's client: where its coroutines run, and how threads wait for them."""

from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class ClientLoop(Protocol):
    """The event loop of one client; a process hands in `rocketmq_broker.client.EventLoopThread`."""

    def start(self) -> None:
        """Starts the loop."""

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Runs the coroutine on the loop, waits for its result in the calling thread, and raises its error.

        Cancels it after `timeout_s` and raises TimeoutError. Raises NotRunning unless the loop runs.
        """

    def stop(self) -> None:
        """Ends the loop."""
