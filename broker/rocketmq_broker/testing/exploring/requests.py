"""The requests of a world's customers. Each request arrives once, at its planned time, at a program that waits for a request."""

import asyncio
from collections import deque

from rocketmq_broker.testing.exploring.errors import UnusableTest
from rocketmq_broker.testing.simulation.loop import OWNER
from rocketmq_broker.testing.simulation.process import SimulatedProcess


class CustomerRequests:
    """Yields the numbers of requests to programs. Functions iterate with `for`, coroutine functions with `async for`.

    The loop never ends: the program waits in it for its next request. If a program is killed, its current request is
    lost, like the request of a customer who receives no response.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Creates an empty queue of requests. `loop` is the world's event loop."""
        self._loop = loop
        self._is_wanted = False
        self._unserved: deque[int] = deque()
        self._waiting: dict[SimulatedProcess, asyncio.Future[int]] = {}
        self._busy: dict[SimulatedProcess, int] = {}

    def arrive(self, number: int) -> None:
        """Passes a request to a waiting program, or keeps it until a program waits."""
        self._unserved.append(number)
        self._hand_out()

    def open(self) -> list[str]:
        """Returns a description of each unfinished request. Returns an empty list if no program takes requests."""
        if not self._is_wanted:
            return []
        unserved = [f"request {number} waits for a program that takes it" for number in self._unserved]
        return unserved + [f"{who.name} works on request {number}" for who, number in self._busy.items() if who.is_alive]

    def __iter__(self) -> "CustomerRequests":
        """Returns this iterator for `for` in a plain function."""
        return self

    def __next__(self) -> int:
        """Waits in a thread of the program for the next request."""
        process = process_of_caller()
        return process.threads.wait_for(self._next(process))

    def __aiter__(self) -> "CustomerRequests":
        """Returns this iterator for `async for` in a coroutine function."""
        return self

    async def __anext__(self) -> int:
        """Waits for the next request."""
        return await self._next(process_of_caller())

    def _next(self, process: SimulatedProcess) -> asyncio.Future[int]:
        if process in self._waiting:
            raise UnusableTest(f"{process.name} waits for two requests at once: use one loop, and start tasks in it")
        self._is_wanted = True
        self._busy.pop(process, None)
        waiting = self._waiting[process] = self._loop.create_future()
        self._hand_out()
        return waiting

    def _hand_out(self) -> None:
        for process, waiting in list(self._waiting.items()):
            if not process.is_alive or waiting.done():
                del self._waiting[process]
            elif self._unserved:
                del self._waiting[process]
                self._busy[process] = number = self._unserved.popleft()
                waiting.set_result(number)


def process_of_caller() -> SimulatedProcess:
    """Returns the process in which the caller runs. Raises UnusableTest outside programs."""
    owner = OWNER.get()
    if not isinstance(owner, SimulatedProcess):
        raise UnusableTest("this function can only be called in a program, which is a function passed to world.run")
    return owner
