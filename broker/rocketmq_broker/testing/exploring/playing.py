"""Runs one explored world, which is a simulated run of programs, requests and faults, until the world is idle."""

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
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
from rocketmq_broker.testing.exploring.run import WorldRun, logs_in
from rocketmq_broker.testing.simulation.faults import EFFECTS
from rocketmq_broker.testing.simulation.plan import Plan, PlannedEvent
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


class ProgramsRun(WorldRun):
    """A run of a test's programs with a broker and a name server."""

    rest_s = _LAST_FAULT_BEGINS_S

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
        super().__init__(plan, world, effects)
        self._points = points
        self._until = until
        self._is_recorded = is_recorded
        self._databases = databases
        self._functions = functions
        name_server(world, NAME_SERVER)
        self._broker = broker(world, BROKER, NAME_SERVERS, _BROKER_SETTINGS)
        self._last_errors: dict[str, BaseException] = {}
        for name, function in programs.items():
            world.program(name, world.machine(name), self._begin(name, function))
        self.requests = CustomerRequests(world.loop)
        self._watch()

    @contextmanager
    def surroundings(self) -> Iterator[None]:
        """Gives the programs the world's time and randomness in the functions of Python's standard library."""
        logs = logs_in(self.world.history if self._is_recorded else None)
        with logs, python_of_the_world(self.plan.seed, NAME_SERVERS):
            yield

    def request(self, event: PlannedEvent) -> Callable[[], object] | None:
        """Returns a function that passes the request to a waiting program."""
        return partial(self._ask, event.whole("number")) if event.what == REQUEST else None

    def _ask(self, number: int) -> None:
        self.world.history.note("customer", "request", f"request {number}")
        self.requests.arrive(number)

    def end_faults(self) -> None:
        """Ends the faults of databases and calls, and those that wait at crash points."""
        self._points.disarm()
        self._databases.end_faults()
        for function in self._functions.values():
            function.disarm()

    # the end

    async def settle(self) -> None:
        """Waits until two successive checks find no unfinished work and the same processes. Raises NeverSettled."""
        self.world.history.note("world", "end", "all faults have ended")
        begun_s = since_s = self.world.elapsed_s
        await self.wait(_FIRST_LOOK_S)
        wait_s, seen = _LOOK_AGAIN_S, None
        while True:
            found, running = self._open(), self._running()
            if not found and seen == running:
                return
            wait_s, seen = (wait_s * 1.5, None) if found else (_LOOK_AGAIN_S, running)
            if self._broker.is_ready.is_set() and self._broker.inspection.count_delayed():
                since_s = self.world.elapsed_s
            if self.world.elapsed_s - since_s > _PATIENCE_S or self.world.elapsed_s - begun_s > _MAX_DELAY_S:
                break
            await self.wait(min(wait_s, _SELDOMEST_LOOK_S))
        waited_s = self.world.elapsed_s - begun_s
        reasons = "\n  ".join(found or [f"{name} keeps ending" for name in self._last_errors])
        raise NeverSettled(
            f"some work is unfinished {waited_s / 60:.0f} minutes (of simulated time) after the end of the faults:\n  {reasons}"
        )

    def _running(self) -> list[SimulatedProcess | None]:
        return [program.process for program in self.world.programs.values()]

    def _open(self) -> list[str]:
        """Returns a description of each piece of unfinished work."""
        found = [self._down(name) for name, program in self.world.programs.items() if program.process is None]
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
        if self.world.is_over:
            return
        self._last_errors[name] = error
        if not self._is_expected(error):
            failure = ProgramFailed(f"the program {name} ended with {type(error).__name__}: {error}")
            failure.__cause__ = error
            self.fail(failure)

    def _is_expected(self, error: BaseException | None) -> bool:
        """Returns whether a fault explains the error or one of its causes."""
        while error is not None:
            if error in self._points.errors or (isinstance(error, _EXPECTED) and not isinstance(error, _MISTAKES)):
                return True
            if is_database_fault(error):
                return True
            error = error.__cause__ or error.__context__
        return False

    # observers

    def _watch(self) -> None:
        world = self.world
        names = world.names
        if self._is_recorded:
            world.network.observe(FrameJournal(world.history, names).see)
        world.network.observe(DecisionWatch(names, self._points.decides, self.fail).see)
        note_error = world.loop.on_error

        def on_error(context: dict[str, Any]) -> None:
            note_error(context)
            error = context.get("exception")
            if isinstance(error, Exception) and not self._is_expected(error):
                failure = ProgramFailed(f"unhandled error: {type(error).__name__}: {error}")
                failure.__cause__ = error
                self.fail(failure)

        world.loop.on_error = on_error
