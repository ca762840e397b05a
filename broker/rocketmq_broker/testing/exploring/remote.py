"""Functions that one program serves and others call, like an HTTP service or a task queue with faults."""

import asyncio
import contextvars
import inspect
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rocketmq_broker.testing.exploring.errors import UnusableTest
from rocketmq_broker.testing.exploring.fault_rows import CALL_DOUBLED, CALL_LATE, CALL_LOST, RESPONSE_LOST
from rocketmq_broker.testing.exploring.requests import process_of_caller
from rocketmq_broker.testing.simulation.faults import Effect, FaultInjector
from rocketmq_broker.testing.simulation.page.markup import counted
from rocketmq_broker.testing.simulation.plan import PlannedEvent
from rocketmq_broker.testing.simulation.process import SimulatedProcess
from rocketmq_broker.testing.simulation.upcoming import Upcoming
from rocketmq_broker.testing.simulation.world import SimulatedWorld

TIMEOUT_S: Final = 5.0
"""The time in seconds after which a call without a response raises TimeoutError."""
_MAX_LATENCY_S: Final = 0.005


class RemoteCallFailed(Exception):
    """Raised by a call if the function raised an error, which is `__cause__`, like a response with status 500."""


@dataclass(slots=True, eq=False)
class _Call:
    args: tuple[Any, ...]
    named: Mapping[str, Any]
    response: asyncio.Future[Any] | None
    """None for a task, which has no response."""
    is_response_lost: bool = False

    def end(self, result: Any, error: BaseException | None = None) -> None:
        if self.response is None or self.response.done() or self.is_response_lost:
            return
        if error is None:
            self.response.set_result(result)
        else:
            self.response.set_exception(error)
            self.response.exception()  # its caller may have died: an error that no one reads is not reported


class RemoteFunction:
    """A function that runs in the program that serves it. Calls may be lost, late or executed twice; so may their responses."""

    def __init__(self, name: str, function: Callable[..., Any], world: SimulatedWorld) -> None:
        """Creates a function without a server. Tests call `ExploredWorld.remote`."""
        self.name = name
        self._function = function
        self._loop = world.loop
        self._history = world.history
        self._chance = world.chance("remote", name)
        self._planned: Upcoming[tuple[PlannedEvent, Callable[[], object]]] = Upcoming()
        """The planned faults, each with a function that counts it."""
        self._under_way = 0
        self._queue: deque[_Call] = deque()
        self._servers: dict[SimulatedProcess, asyncio.Future[_Call] | None] = {}
        """The programs that serve the function, each with a future if it waits for a call."""
        self._running: dict[SimulatedProcess, _Call] = {}

    # for programs

    def serve(self) -> None:
        """Executes calls, one at a time, until the program dies. It is a program: `world.run(shop=shop, bank=credit.serve)`.

        A task's error ends the program. A call's error is raised at its caller as RemoteCallFailed.
        """
        process = process_of_caller()
        self._servers[process] = None
        process.on_death(lambda: self._server_died(process))
        while True:
            call = process.threads.wait_for(self._next(process))
            try:
                result = self._function(*call.args, **call.named)
                if inspect.iscoroutine(result):
                    result = process.run_and_wait(result)
            except Exception as error:
                if call.response is None:
                    raise
                call.end(None, _failed(self.name, error))
            else:
                self._respond(call, result)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Calls the function from a plain function, and returns its result.

        Raises RemoteCallFailed, ConnectionRefusedError if no program serves the function, ConnectionResetError if its program
        dies, and TimeoutError after 5 s. After each of these errors the function may have been executed.
        """
        return process_of_caller().threads.wait_for(self.call(*args, **named))

    async def call(self, *args: Any, **named: Any) -> Any:
        """Calls the function from a coroutine function, like `__call__`."""
        response: asyncio.Future[Any] = self._loop.create_future()
        self._send(_Call(args, named, response))
        await asyncio.wait([response], timeout=TIMEOUT_S)
        if not response.done():
            raise TimeoutError(f"{self.name} did not respond within {TIMEOUT_S:g} s")
        return response.result()

    def send(self, *args: Any, **named: Any) -> None:
        """Puts a task into the function's queue, and returns at once. The task waits until a program serves the function.

        A program that dies loses the task that it executes, like a Celery worker that acknowledges early.
        """
        self._send(_Call(args, named, None))

    # for the world

    def arm(self, fault: PlannedEvent, fired: Callable[[], object]) -> None:
        """Plans a fault of the `nth` call from now."""
        self._planned.add(fault.whole("nth"), (fault, fired))

    def disarm(self) -> None:
        """Removes all planned faults that have had no effect."""
        self._planned.clear()

    def open(self) -> list[str]:
        """Returns a description of the unfinished calls."""
        count = self._under_way + len(self._queue)
        found = [f"{counted(count, 'call')} of {self.name} waits for a program that serves it"] if count else []
        return found + [f"{process.name} executes a call of {self.name}" for process in self._running]

    # internals

    def _send(self, call: _Call) -> None:
        faults = self._due()
        call.is_response_lost = RESPONSE_LOST in faults
        if CALL_LOST in faults:
            return
        late_s = faults[CALL_LATE].number("delay_s") if CALL_LATE in faults else 0.0
        self._later(late_s, call)
        if CALL_DOUBLED in faults:
            response = None if call.response is None else self._loop.create_future()
            second = _Call(call.args, call.named, response, is_response_lost=True)
            self._later(late_s + faults[CALL_DOUBLED].number("delay_s"), second)

    def _due(self) -> dict[str, PlannedEvent]:
        """Counts a call. Returns the faults of the call, keyed by kind."""
        due = self._planned.occur()
        for fault, fired in due:
            self._history.note(self.name, "fault", fault.what)
            fired()
        return {fault.what: fault for fault, _ in due}

    def _later(self, seconds: float, call: _Call) -> None:
        """Delivers the call after its latency, even if its caller has died by then."""
        self._under_way += 1
        seconds += self._chance.random() * _MAX_LATENCY_S
        self._loop.call_later(seconds, self._arrive, call, context=contextvars.Context())

    def _arrive(self, call: _Call) -> None:
        self._under_way -= 1
        if call.response is not None and not any(process.is_alive for process in self._servers):
            call.end(None, ConnectionRefusedError(f"no program serves {self.name}"))
            return
        self._queue.append(call)
        self._hand_out()

    def _next(self, process: SimulatedProcess) -> asyncio.Future[_Call]:
        self._running.pop(process, None)
        waiting = self._servers[process] = self._loop.create_future()
        self._hand_out()
        return waiting

    def _hand_out(self) -> None:
        for process, waiting in self._servers.items():
            if self._queue and waiting is not None and process.is_alive:
                self._running[process] = call = self._queue.popleft()
                self._servers[process] = None
                waiting.set_result(call)

    def _respond(self, call: _Call, result: Any) -> None:
        if call.response is not None:
            seconds = self._chance.random() * _MAX_LATENCY_S
            self._loop.call_later(seconds, call.end, result, context=contextvars.Context())

    def _server_died(self, process: SimulatedProcess) -> None:
        del self._servers[process]
        reset = ConnectionResetError(f"the program that serves {self.name} died")
        if (call := self._running.pop(process, None)) is not None:
            call.end(None, reset)
        if not self._servers:
            for call in [call for call in self._queue if call.response is not None]:
                self._queue.remove(call)
                call.end(None, reset)


def remote_effects(functions: Mapping[str, RemoteFunction]) -> Mapping[str, Effect]:
    """Returns the effects of the faults of calls, for a FaultInjector."""

    async def arm(faults: FaultInjector, fault: PlannedEvent) -> None:
        functions[fault.where].arm(fault, faults.once(fault))

    return dict.fromkeys((CALL_LOST, RESPONSE_LOST, CALL_DOUBLED, CALL_LATE), arm)


def check_remote(function: Callable[..., Any]) -> str:
    """Returns the name of the function. Raises UnusableTest if it has none."""
    name = getattr(function, "__name__", "<lambda>")
    if not name.isidentifier():
        raise UnusableTest("world.remote needs a named function: write def credit(order_id): ...")
    return name


def _failed(name: str, error: BaseException) -> RemoteCallFailed:
    failed = RemoteCallFailed(f"{name} raised {type(error).__name__}: {error}")
    failed.__cause__ = error
    return failed
