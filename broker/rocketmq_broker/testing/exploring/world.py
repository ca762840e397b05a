"""Runs the programs of an explored test in a simulated world, and injects faults at their crash points."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Protocol, TypeVar

from rocketmq_broker.testing.exploring.crash_points import CrashPoints
from rocketmq_broker.testing.exploring.databases import ExploredDatabase, WorldDatabases
from rocketmq_broker.testing.exploring.drawing import plan_of
from rocketmq_broker.testing.exploring.errors import UnusableTest
from rocketmq_broker.testing.exploring.fault_rows import BROKER, FAULTS, NAME_SERVER, world_parts
from rocketmq_broker.testing.exploring.playing import NAME_SERVERS, ProgramsRun, UserProgram
from rocketmq_broker.testing.exploring.remote import RemoteFunction, check_remote
from rocketmq_broker.testing.exploring.requests import CustomerRequests, process_of_caller
from rocketmq_broker.testing.exploring.run import WorldRun
from rocketmq_broker.testing.exploring.search.worlds import FoundBroken, WorldEnd
from rocketmq_broker.testing.simulation.fault_rows import possible
from rocketmq_broker.testing.simulation.history import History
from rocketmq_broker.testing.simulation.plan import Plan
from rocketmq_broker.testing.simulation.world import SimulatedWorld

if TYPE_CHECKING:
    from sqlalchemy import Engine

_RESERVED = frozenset({BROKER, NAME_SERVER, "customer", "world"})


class Closable(Protocol):
    """A resource of a program, such as a database connection."""

    def close(self) -> object:
        """Closes the resource."""


class PlanDrawn(BaseException):
    """Raised by `run` in a world that only draws its plan."""


C = TypeVar("C", bound=Closable)


class ExploredWorld:
    """A simulated run of a test's programs with a broker and faults. The test calls `run` once, then makes its assertions."""

    namesrv_addr = NAME_SERVERS
    """The address of the name server, which is also NAMESRV_ADDR in the environment."""

    def __init__(self, seed: int, plan: Plan | None = None, *, is_recorded: bool = False, is_only_drawn: bool = False) -> None:
        """Creates a world for `plan`, or for a plan of the seed. `is_recorded` records all messages in the history.

        With `is_only_drawn`, `run` raises PlanDrawn when it has drawn the plan.
        """
        self._seed = seed
        self._is_only_drawn = is_only_drawn
        self.simulated = SimulatedWorld(seed if plan is None else plan.seed)
        self._databases = WorldDatabases(self.simulated)
        self._functions: dict[str, RemoteFunction] = {}
        self._is_recorded = is_recorded
        self._points = CrashPoints()
        self._run: WorldRun | None = None
        self._requests: CustomerRequests | None = None
        self._plan: Plan | None = plan
        self._possible: Collection[str] | None = None
        """The kinds of faults that the search may draw for these programs."""

    @classmethod
    def of(cls, plan: Plan | int, *, is_recorded: bool) -> ExploredWorld:
        """Creates a world for a plan, or for the plan of a seed."""
        return cls(plan, is_recorded=is_recorded) if isinstance(plan, int) else cls(plan.seed, plan, is_recorded=is_recorded)

    # for the test

    def run(self, *, requests: int = 5, until: Callable[[], object] | None = None, **programs: UserProgram) -> None:
        """Runs the programs with requests and faults. Returns when all transactions are decided and all messages consumed.

        Each program is named by its keyword, has its own machine, and is restarted each time it is killed. State outside the
        program's function survives. The clients of a program keep running after its function has returned. Customers send
        `requests` requests. `until` is a further condition for the end.

        Raises UnusableTest, and the AssertionErrors ProgramFailed, RuleBroken and NeverSettled.
        """
        __tracebackhide__ = True  # pytest then shows the test's line
        self._check_unused()
        _check(programs)
        for name in (*self._databases, *self._functions):
            if name in programs or name in _RESERVED:
                raise UnusableTest(f"the name {name} is used twice: use different names for programs, databases and functions")
        parts = world_parts(list(programs), list(self._databases), list(self._functions))
        self._possible = possible(FAULTS, parts)
        self._plan = plan = self._plan or plan_of(self._seed, parts, requests)
        if self._is_only_drawn:
            raise PlanDrawn
        run = ProgramsRun(
            plan, self.simulated, programs, self._points, databases=self._databases, functions=self._functions, until=until,
            is_recorded=self._is_recorded,
        )  # fmt: skip
        self._requests = run.requests
        try:
            self.play(run)
        except AssertionError as error:
            raise error.with_traceback(None) from error.__cause__

    def play(self, run: WorldRun) -> None:
        """Runs other worlds than those of `run`, whose parts were added to `simulated` and whose plan is `plan`."""
        __tracebackhide__ = True
        self._check_unused()
        self._run = run
        run.play()

    def database(self, name: str, prepare: Callable[[Engine], object] | None = None) -> ExploredDatabase:
        """Creates a SQLite database that outlives the programs, with faults. Call it before `run`.

        `prepare` creates the tables: `world.database("orders", SQLModel.metadata.create_all)`. Statements may be refused, hang,
        or be the last of their program. A database commit may lose its response. Another writer may hold the lock.

        Raises UnusableTest if the package sqlalchemy is missing.
        """
        self._check_not_run("database")
        return self._databases.create(name, prepare)

    def remote(self, function: Callable[..., object]) -> RemoteFunction:
        """Makes a function remote: one program serves it, and others call it, like an HTTP service or a task queue.

        Calls and responses may be lost, late or doubled. Call it before `run`; it may be used as a decorator. Then pass
        `credit.serve` to `run` as a program. Others call `credit(order)` for a request, and `credit.send(order)` for a task.
        """
        self._check_not_run("remote")
        name = check_remote(function)
        remote = self._functions[name] = RemoteFunction(name, function, self.simulated)
        return remote

    @property
    def requests(self) -> CustomerRequests:
        """The requests of customers.

        Programs iterate over them with `for number in world.requests:` or `async for`. Each number occurs once.
        """
        if self._requests is None:
            raise UnusableTest("world.requests can only be used in a program passed to world.run")
        return self._requests

    def crash_point(self) -> None:
        """Marks a point where the program may be killed, such as between sending a message and a database commit."""
        self._points.passed(process_of_caller())

    def may_fail(self, error: BaseException | type[BaseException] = OSError) -> None:
        """Raises the error if the plan requires it.

        Call this method before a database commit to simulate a refusal, or after a commit to simulate a lost response.
        """
        self._points.called(process_of_caller(), error("a fault of the world") if isinstance(error, type) else error)

    def closed_at_death(self, resource: C) -> C:
        """Closes the resource when the program is killed, so that a database connection rolls back as in reality.

        Returns the resource.
        """
        process_of_caller().on_death(resource.close)
        return resource

    # for the search

    def end(self) -> None:
        """Releases the programs of the simulated run. Call this method after the test's assertions."""
        if self._run is not None:
            self._run.end()
        self._databases.close()

    @property
    def has_run(self) -> bool:
        """Whether the test called `run`."""
        return self._run is not None

    @property
    def plan(self) -> Plan:
        """The plan that is run. Drawn by `run`, unless it was given."""
        assert self._plan is not None
        return self._plan

    @property
    def history(self) -> History:
        """The recorded events."""
        return self.simulated.history

    @property
    def fired(self) -> Counter[str]:
        """The number of faults of each kind that had an effect."""
        return Counter() if self._run is None else self._run.injector.fired

    def ended(self, broken: tuple[FoundBroken, ...], error: BaseException | None, kinds: Collection[str]) -> WorldEnd:
        """Returns the result of the run. Its readable events are omitted unless it failed or is recorded.

        `kinds` are the kinds of faults that the search may draw, unless `run` has determined them.
        """
        happenings = tuple(self.history.happenings) if broken or self._is_recorded else ()
        possible = kinds if self._possible is None else self._possible
        expected = dict.fromkeys((kind for kind in possible if kind not in self._points.kinds_without_place), 0)
        fired, simulated_s = {**expected, **self.fired}, self.simulated.elapsed_s
        return WorldEnd(self.plan, self.history.digest, fired, simulated_s, broken, happenings, error=error)

    def _check_unused(self) -> None:
        if self._run is not None:
            raise UnusableTest("world.run must be called only once in a test")

    def _check_not_run(self, name: str) -> None:
        if self._run is not None:
            raise UnusableTest(f"world.{name} must be called before world.run")


def _check(programs: dict[str, UserProgram]) -> None:
    if not programs:
        raise UnusableTest("world.run needs at least one program: world.run(shop=shop, bank=bank)")
    for name, program in programs.items():
        if name in _RESERVED:
            raise UnusableTest(f"the name {name} is reserved: give the program another name")
        if inspect.iscoroutine(program):
            program.close()
            raise UnusableTest(f"{name} is a coroutine: pass the function itself, {name}={name}")
        if not callable(program):
            raise UnusableTest(f"{name} is {type(program).__name__}, not a function")
        if any(it.default is it.empty and it.kind not in (it.VAR_POSITIONAL, it.VAR_KEYWORD) for it in _parameters(program)):
            raise UnusableTest(f"{name} has required parameters: a program must be a function without parameters")


def _parameters(program: UserProgram) -> list[inspect.Parameter]:
    return list(inspect.signature(program).parameters.values())
