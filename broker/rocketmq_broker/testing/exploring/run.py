"""Runs one world (a simulated run): its programs begin, requests and faults occur, the faults end, and the world settles."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from rocketmq_broker.testing.simulation.faults import Effect, FaultInjector
from rocketmq_broker.testing.simulation.history import History
from rocketmq_broker.testing.simulation.loop import OWNER
from rocketmq_broker.testing.simulation.plan import Plan, PlannedEvent
from rocketmq_broker.testing.simulation.process import SimulatedProcess
from rocketmq_broker.testing.simulation.world import SimulatedWorld


class WorldRun:
    """One simulated run of one plan: programs begin, requests and faults occur, faults end, and the world settles.

    Call `play` once, and later `end`.
    """

    rest_s = 0.0
    """The extra time in seconds at the end of a plan."""

    def __init__(self, plan: Plan, world: SimulatedWorld, effects: Mapping[str, Effect]) -> None:
        """Creates a run of `plan` in a new world, whose parts are added later. `effects` are those of its faults."""
        self.plan = plan
        self.world = world
        self.injector = FaultInjector(world, effects)
        self._failed: asyncio.Future[None] = world.loop.create_future()

    def play(self) -> None:
        """Runs the world to its end, and keeps the programs' state. Raises AssertionErrors."""
        with self.surroundings():
            self.world.play(self._play())

    def end(self) -> None:
        """Drops the programs. Call this method after the test's assertions. The programs' `finally` blocks have no effect."""
        with self.surroundings():
            self.world.end()

    def surroundings(self) -> AbstractContextManager[None]:
        """Returns the context in which the world runs."""
        return logs_in(None)

    def request(self, event: PlannedEvent) -> Callable[[], object] | None:
        """Returns a function that sends the request of a customer, or None if the event is a fault."""
        raise NotImplementedError

    def end_faults(self) -> None:
        """Ends the faults that do not end by themselves, except those of machines."""
        raise NotImplementedError

    async def settle(self) -> None:
        """Waits until the world has settled."""
        raise NotImplementedError

    async def _play(self) -> None:
        for program in self.world.programs.values():
            program.begin()
        for event in self.plan.events:
            if (request := self.request(event)) is None:
                self.injector.schedule(event)
            else:
                self.world.loop.call_later(event.at_s, request)
        await self.wait(self.plan.ends_s + self.rest_s)
        await self.injector.stop()
        for machine in self.world.machines.values():
            machine.disk.mend()
            machine.clock.set_right()
        self.end_faults()
        await self.settle()

    async def wait(self, seconds: float) -> None:
        """Advances the world's time. Raises the error that `fail` was called with in that time."""
        await asyncio.wait([self._failed], timeout=seconds)
        if self._failed.done():
            self._failed.result()

    def fail(self, failure: AssertionError) -> None:
        """Ends the world early."""
        if not self._failed.done():
            self.world.history.note("world", "violation", str(failure))
            self._failed.set_exception(failure)


@contextmanager
def logs_in(history: History | None) -> Iterator[None]:
    """Suppresses the programs' logs. Records warnings in the history, if one is given."""
    if history is None:
        before = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        try:
            yield
        finally:
            logging.disable(before)
        return
    handler = _NotingHandler(history)
    others, logging.root.handlers = logging.root.handlers, [handler]
    try:
        yield
    finally:
        logging.root.handlers = others


class _NotingHandler(logging.Handler):
    """Records warnings and errors that programs log, with the text of the exception."""

    def __init__(self, history: History) -> None:
        super().__init__(logging.WARNING)
        self._history = history

    def emit(self, record: logging.LogRecord) -> None:
        owner = OWNER.get()
        name = owner.name if isinstance(owner, SimulatedProcess) else "world"
        error = record.exc_info[1] if record.exc_info else None
        cause = "" if error is None else f": {type(error).__name__}: {error}"
        self._history.note(name, "log", f"{record.levelname.lower()}: {record.getMessage()}{cause}")
