"""Runs one explored world, which is a simulated run of programs, requests and faults, until the world is idle."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from rocketmq_broker.client import ClientError, IllegalConfiguration, MessageRefused
from rocketmq_broker.testing.exploring.crash_points import CrashPoints
from rocketmq_broker.testing.exploring.databases import WorldDatabases, is_database_fault
from rocketmq_broker.testing.exploring.drawing import REQUEST, check_plan
from rocketmq_broker.testing.exploring.errors import NeverSettled, ProgramFailed
from rocketmq_broker.testing.exploring.fault_rows import BROKER, NAME_SERVER, world_parts
from rocketmq_broker.testing.exploring.frame_watch import DecisionWatch, FrameJournal
from rocketmq_broker.testing.exploring.real_python import python_of_the_world
from rocketmq_broker.testing.exploring.remote import RemoteFunction, remote_effects
from rocketmq_broker.testing.exploring.requests import CustomerRequests
from rocketmq_broker.testing.exploring.rest import unsettled_at
from rocketmq_broker.testing.simulation.faults import EFFECTS, FaultInjector
from rocketmq_broker.testing.simulation.history import History
from rocketmq_broker.testing.simulation.loop import OWNER
from rocketmq_broker.testing.simulation.plan import Plan
from rocketmq_broker.testing.simulation.process import SimulatedProcess
from rocketmq_broker.testing.simulation.servers import NAME_SERVER_PORT, broker, name_server
from rocketmq_broker.testing.simulation.world import SimulatedWorld

UserProgram: TypeAlias = Callable[[], object] | Callable[[], Awaitable[object]]
"""A program of the test: a function, which runs in a thread, or a coroutine function."""

NAME_SERVERS: Final = f"{NAME_SERVER}:{NAME_SERVER_PORT}"
"""The value for clients' NAMESRV_ADDR."""
_BROKER_SETTINGS: Final = {"flushDiskType": "SYNC_FLUSH", "transactionTimeOut": "3000", "transactionCheckInterval": "5000"}
_EXPECTED: Final = (ClientError, OSError, TimeoutError)
"""The errors that faults may raise in a program. A program that ends with such an error is restarted."""
_MISTAKES: Final = (IllegalConfiguration, MessageRefused)
"""The errors that always indicate a bug of the program, whatever the faults."""
_LAST_FAULT_BEGINS_S: Final = 0.001
"""The extra time in seconds at the end of a plan, so that a fault at the very end still begins."""
_FIRST_LOOK_S: Final = 35.0
"""The seconds between the end of the faults and the first check. Clients poll routes every 30 s, so all find the broker."""
_LOOK_AGAIN_S: Final = 10.0
_SELDOMEST_LOOK_S: Final = 300.0
_PATIENCE_S: Final = 1800.0
"""The maximum time in seconds until a world is idle, not counting time with delayed messages."""
_MAX_DELAY_S: Final = 6 * 3600.0
"""The maximum total time in seconds until a world is idle. A message that always fails is retried for 4 h 45 min."""


class ExploredPlay:
    """One simulated run of one plan. Call `play` once."""

    def __init__(
        self,
        plan: Plan,
        world: SimulatedWorld,
        programs: Mapping[str, UserProgram],
        points: CrashPoints,
        *,
        databases: WorldDatabases,
        functions: Mapping[str, RemoteFunction],
        until: Callable[[], object] | None = None,
        is_recorded: bool = False,
    ) -> None:
        """Creates a run of `plan` in a new world, with the world's databases and remote functions.

        `until` is a further condition for the end. `is_recorded` records all messages in the history.

        Raises UnreadablePlan for an event of an unknown kind or with an unknown target.
        """
        effects = {
            **EFFECTS, **points.effects(), **databases.effects(), **remote_effects(functions),
        }  # fmt: skip
        check_plan(plan, world_parts(list(programs), list(databases), list(functions)), effects)
        self._plan = plan
        self._points = points
        self._until = until
        self._is_recorded = is_recorded
        self._world = world
        self._databases = databases
        self._functions = functions
        name_server(world, NAME_SERVER)
        self._broker = broker(world, BROKER, NAME_SERVERS, _BROKER_SETTINGS)
        self._last_errors: dict[str, BaseException] = {}
        for name, function in programs.items():
            world.program(name, world.machine(name), self._begin(name, function))
        self.requests = CustomerRequests(world.loop)
        self.injector = FaultInjector(world, effects)
        self._failed: asyncio.Future[None] = world.loop.create_future()
        self._watch()

    @property
    def history(self) -> History:
        """The recorded events."""
        return self._world.history

    @property
    def simulated_s(self) -> float:
        """The elapsed seconds of the world's time."""
        return self._world.elapsed_s

    def play(self) -> None:
        """Runs the world to its end, and keeps the programs' state. Raises ProgramFailed, RuleBroken, NeverSettled."""
        with self._surroundings():
            self._world.play(self._play())

    def end(self) -> None:
        """Drops the programs. Call this method after the test's assertions. The programs' `finally` blocks have no effect."""
        with self._surroundings():
            self._world.end()

    @contextmanager
    def _surroundings(self) -> Iterator[None]:
        with _logs_in(self.history if self._is_recorded else None), python_of_the_world(self._plan.seed, NAME_SERVERS):
            yield

    async def _play(self) -> None:
        for program in self._world.programs.values():
            program.begin()
        for event in self._plan.events:
            if event.what == REQUEST:
                self._world.loop.call_later(event.at_s, self._ask, event.whole("number"))
            else:
                self.injector.schedule(event)
        await self._pass(self._plan.ends_s + _LAST_FAULT_BEGINS_S)
        await self._mend()
        await self._come_to_rest()

    def _ask(self, number: int) -> None:
        self.history.note("customer", "request", f"request {number}")
        self.requests.arrive(number)

    async def _pass(self, seconds: float) -> None:
        """Advances the world's time. Raises any error that a program or an observer raised in that time."""
        await asyncio.wait([self._failed], timeout=seconds)
        if self._failed.done():
            self._failed.result()

    async def _mend(self) -> None:
        await self.injector.stop()
        self._points.disarm()
        self._databases.end_faults()
        for function in self._functions.values():
            function.disarm()
        for machine in self._world.machines.values():
            machine.disk.mend()
            machine.clock.set_right()
        self.history.note("world", "end", "all faults have ended")

    # the end

    async def _come_to_rest(self) -> None:
        """Waits until two successive checks find no unfinished work and the same processes."""
        begun_s = since_s = self.simulated_s
        await self._pass(_FIRST_LOOK_S)
        wait_s, seen = _LOOK_AGAIN_S, None
        while True:
            found, running = self._open(), self._running()
            if not found and seen == running:
                return
            wait_s, seen = (wait_s * 1.5, None) if found else (_LOOK_AGAIN_S, running)
            if self._broker.is_ready.is_set() and self._broker.inspection.count_delayed():
                since_s = self.simulated_s
            if self.simulated_s - since_s > _PATIENCE_S or self.simulated_s - begun_s > _MAX_DELAY_S:
                break
            await self._pass(min(wait_s, _SELDOMEST_LOOK_S))
        waited_s = self.simulated_s - begun_s
        reasons = "\n  ".join(found or [f"{name} keeps ending" for name in self._last_errors])
        raise NeverSettled(
            f"some work is unfinished {waited_s / 60:.0f} minutes (of simulated time) after the end of the faults:\n  {reasons}"
        )

    def _running(self) -> list[SimulatedProcess | None]:
        return [program.process for program in self._world.programs.values()]

    def _open(self) -> list[str]:
        """Returns a description of each piece of unfinished work."""
        found = [self._down(name) for name, program in self._world.programs.items() if program.process is None]
        found += self.requests.open()
        found += [text for function in self._functions.values() for text in function.open()]
        if self._broker.is_ready.is_set():
            found += unsettled_at(self._broker.inspection)
        else:
            found.append("the broker is not running")
        if not found and self._until is not None and not self._until():
            found.append("the condition `until` does not hold")
        return found

    def _down(self, name: str) -> str:
        error = self._last_errors.get(name)
        why = "" if error is None else f": it ended with {type(error).__name__}: {error}"
        return f"{name} is down although it is restarted after each end{why}"

    # the programs

    def _begin(self, name: str, function: UserProgram) -> Callable[[SimulatedProcess], Any]:
        async def begin(process: SimulatedProcess) -> None:
            try:
                if inspect.iscoroutinefunction(function):
                    await function()
                else:
                    await process.start_thread(function)
            except (Exception, SystemExit) as error:
                self._ended(name, error)
                raise RuntimeError(f"{type(error).__name__}: {error}") from error

        return begin

    def _ended(self, name: str, error: BaseException) -> None:
        if self._world.is_over:
            return
        self._last_errors[name] = error
        if not self._is_expected(error):
            failure = ProgramFailed(f"the program {name} ended with {type(error).__name__}: {error}")
            failure.__cause__ = error
            self._fail(failure)

    def _is_expected(self, error: BaseException | None) -> bool:
        """Returns whether a fault explains the error or one of its causes."""
        while error is not None:
            if error in self._points.errors or (isinstance(error, _EXPECTED) and not isinstance(error, _MISTAKES)):
                return True
            if is_database_fault(error):
                return True
            error = error.__cause__ or error.__context__
        return False

    def _fail(self, failure: AssertionError) -> None:
        if not self._failed.done():
            self.history.note("world", "violation", str(failure))
            self._failed.set_exception(failure)

    # observers

    def _watch(self) -> None:
        world = self._world
        names = {machine.address: name for name, machine in world.machines.items()}
        if self._is_recorded:
            world.network.observe(FrameJournal(world.history, names).see)
        world.network.observe(DecisionWatch(names, self._points.decides, self._fail).see)
        note_error = world.loop.on_error

        def on_error(context: dict[str, Any]) -> None:
            note_error(context)
            error = context.get("exception")
            if isinstance(error, Exception) and not self._is_expected(error):
                failure = ProgramFailed(f"unhandled error: {type(error).__name__}: {error}")
                failure.__cause__ = error
                self._fail(failure)

        world.loop.on_error = on_error


@contextmanager
def _logs_in(history: History | None) -> Iterator[None]:
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
