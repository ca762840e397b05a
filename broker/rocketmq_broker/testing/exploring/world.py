"""Runs the programs of an explored test in a simulated world, and injects faults at their crash points."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from rocketmq_broker.testing.exploring.crash_points import CrashPoints
from rocketmq_broker.testing.exploring.databases import ExploredDatabase, WorldDatabases
from rocketmq_broker.testing.exploring.drawing import plan_of
from rocketmq_broker.testing.exploring.errors import UnusableTest
from rocketmq_broker.testing.exploring.fault_rows import BROKER, NAME_SERVER, world_parts
from rocketmq_broker.testing.exploring.playing import NAME_SERVERS, ExploredPlay, UserProgram
from rocketmq_broker.testing.exploring.remote import RemoteFunction, check_remote
from rocketmq_broker.testing.exploring.requests import CustomerRequests, process_of_caller
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


C = TypeVar("C", bound=Closable)


class ExploredWorld:
    """A simulated run of a test's programs with a broker and faults. The test calls `run` once, then makes its assertions."""

    namesrv_addr = NAME_SERVERS
    """The address of the name server, which is also NAMESRV_ADDR in the environment."""

    def __init__(self, seed: int, plan: Plan | None = None, *, is_recorded: bool = False) -> None:
        """Creates a world for `plan`, or for a plan of the seed. `is_recorded` records all messages in the history."""
        self._seed = seed
        self._given = plan
        self._simulated = SimulatedWorld(seed if plan is None else plan.seed)
        self._databases = WorldDatabases(self._simulated)
        self._functions: dict[str, RemoteFunction] = {}
        self._is_recorded = is_recorded
        self._points = CrashPoints()
        self._play: ExploredPlay | None = None
        self._plan: Plan | None = None

    # for the test

    def run(self, *, requests: int = 5, until: Callable[[], object] | None = None, **programs: UserProgram) -> None:
        """Runs the programs with requests and faults. Returns when all transactions are decided and all messages consumed.

        Each program is named by its keyword, has its own machine, and is restarted each time it is killed. State outside the
        program's function survives. The clients of a program keep running after its function has returned. Customers send
        `requests` requests. `until` is a further condition for the end.

        Raises UnusableTest, and the AssertionErrors ProgramFailed, RuleBroken and NeverSettled.
        """
        __tracebackhide__ = True  # pytest then shows the test's line
        if self._play is not None:
            raise UnusableTest("world.run must be called only once in a test")
        _check(programs)
        for name in (*self._databases, *self._functions):
            if name in programs or name in _RESERVED:
                raise UnusableTest(f"the name {name} is used twice: use different names for programs, databases and functions")
        parts = world_parts(list(programs), list(self._databases), list(self._functions))
        self._plan = plan = self._given or plan_of(self._seed, parts, requests)
        self._play = ExploredPlay(
            plan, self._simulated, programs, self._points, databases=self._databases, functions=self._functions, until=until,
            is_recorded=self._is_recorded,
        )  # fmt: skip
        try:
            self._play.play()
        except AssertionError as error:
            raise error.with_traceback(None) from error.__cause__

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
        remote = self._functions[name] = RemoteFunction(name, function, self._simulated)
        return remote

    @property
    def requests(self) -> CustomerRequests:
        """The requests of customers.

        Programs iterate over them with `for number in world.requests:` or `async for`. Each number occurs once.
        """
        if self._play is None:
            raise UnusableTest("world.requests can only be used in a program passed to world.run")
        return self._play.requests

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
        if self._play is not None:
            self._play.end()
        self._databases.close()

    @property
    def has_run(self) -> bool:
        """Whether the test called `run`."""
        return self._play is not None

    @property
    def plan(self) -> Plan:
        """The plan that was run."""
        assert self._plan is not None
        return self._plan

    @property
    def history(self) -> History:
        """The recorded events."""
        assert self._play is not None
        return self._play.history

    @property
    def fired(self) -> Counter[str]:
        """The number of faults of each kind that had an effect."""
        return Counter() if self._play is None else self._play.injector.fired

    @property
    def kinds_without_place(self) -> set[str]:
        """The kinds of faults that cannot occur, because no program had a crash point, a decision or a call of `may_fail`."""
        return self._points.kinds_without_place

    def _check_not_run(self, name: str) -> None:
        if self._play is not None:
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
