"""The interface of the event loop that runs a client and lets other threads wait for the client's coroutines."""

from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class ClientLoop(Protocol):
    """The event loop of one client. In a process it is a `rocketmq_broker.client.EventLoopThread`."""

    def start(self) -> None:
        """Starts the loop."""

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Runs the coroutine on the loop, and returns its result to the calling thread. Raises the coroutine's errors.

        After `timeout_s` it cancels the coroutine and raises TimeoutError. Raises NotRunning if the loop is not running.
        """

    def stop(self) -> None:
        """Stops the loop."""
