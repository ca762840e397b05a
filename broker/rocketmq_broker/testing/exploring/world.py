"""The world that an explored test gets: its programs, the requests of its customers, and places where it may go wrong."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable
from typing import Protocol, TypeVar

from rocketmq_broker.testing.exploring.crash_points import CrashPoints
from rocketmq_broker.testing.exploring.drawing import plan_of
from rocketmq_broker.testing.exploring.errors import UnusableTest
from rocketmq_broker.testing.exploring.fault_rows import AT_DECISION, AT_POINT, BROKER, CALL_FAILS, NAME_SERVER
from rocketmq_broker.testing.exploring.playing import NAME_SERVERS, ExploredPlay, UserProgram
from rocketmq_broker.testing.exploring.requests import CustomerRequests, process_of_caller
from rocketmq_broker.testing.simulation.history import History
from rocketmq_broker.testing.simulation.plan import Plan

_RESERVED = frozenset({BROKER, NAME_SERVER, "customer", "world"})


class Closable(Protocol):
    """A resource of a program, such as a connection to a database."""

    def close(self) -> object:
        """Closes it."""


C = TypeVar("C", bound=Closable)


class ExploredWorld:
    """A world for one call of a test function. The test calls `run` once, and then asserts."""

    namesrv_addr = NAME_SERVERS
    """The address of the name server. Clients find it as NAMESRV_ADDR in the environment, too."""

    def __init__(self, seed: int, plan: Plan | None = None, *, is_told: bool = False) -> None:
        """Plays `plan`, or what is drawn from the seed. `is_told` keeps what programs and broker say to each other."""
        self._seed = seed
        self._given = plan
        self._is_told = is_told
        self._points = CrashPoints()
        self._play: ExploredPlay | None = None
        self._plan: Plan | None = None

    # for the test

    def run(self, *, requests: int = 5, until: Callable[[], object] | None = None, **programs: UserProgram) -> None:
        """Runs the programs through requests and faults, and returns when no transaction is undecided and no message waits.

        Each program has its name from its keyword, a machine of its own, and is started again after each death. What it keeps
        outside of its function survives. A program that returns goes on to serve with the clients that it started. Customers
        send `requests` requests. `until` is a further condition for the end.

        Raises ProgramFailed, RuleBroken and NeverSettled, which are AssertionErrors, and UnusableTest.
        """
        __tracebackhide__ = True  # pytest then shows the test's line
        if self._play is not None:
            raise UnusableTest("world.run was called before: a test runs its world once")
        _check(programs)
        self._plan = plan = self._given or plan_of(self._seed, list(programs), requests)
        self._play = ExploredPlay(plan, programs, self._points, until=until, is_told=self._is_told)
        try:
            self._play.play()
        except AssertionError as error:
            raise error.with_traceback(None) from error.__cause__

    @property
    def requests(self) -> CustomerRequests:
        """The requests of customers: `for number in world.requests:` in a program, or `async for`. Each number comes once."""
        if self._play is None:
            raise UnusableTest("world.requests is for the programs of world.run")
        return self._play.requests

    def crash_point(self) -> None:
        """Marks a place where the program may die, such as between a message and a database commit."""
        self._points.passed(process_of_caller())

    def may_fail(self, error: BaseException | type[BaseException] = OSError) -> None:
        """Raises the error at times. Before a database commit: the database refuses it; after one: its answer is lost."""
        self._points.called(process_of_caller(), error("a fault of the world") if isinstance(error, type) else error)

    def closed_at_death(self, resource: C) -> C:
        """Returns the resource, and closes it when the program dies: a database connection rolls back then, as in reality."""
        process_of_caller().on_death(resource.close)
        return resource

    # for the search

    def end(self) -> None:
        """Drops what is left of the world. Call it after the test's assertions."""
        if self._play is not None:
            self._play.end()

    @property
    def has_run(self) -> bool:
        """Whether the test called `run`."""
        return self._play is not None

    @property
    def plan(self) -> Plan:
        """What was played."""
        assert self._plan is not None
        return self._plan

    @property
    def history(self) -> History:
        """What happened."""
        assert self._play is not None
        return self._play.history

    @property
    def fired(self) -> Counter[str]:
        """How often each kind of fault had an effect."""
        return Counter() if self._play is None else self._play.injector.fired

    @property
    def kinds_without_place(self) -> set[str]:
        """The kinds of faults for which the programs have no place."""
        points = self._points
        places = {AT_POINT: points.has_points, AT_DECISION: points.has_decisions, CALL_FAILS: points.has_calls}
        return {kind for kind, has_place in places.items() if not has_place}


def _check(programs: dict[str, UserProgram]) -> None:
    if not programs:
        raise UnusableTest("a world needs programs: world.run(shop=shop, bank=bank)")
    for name, program in programs.items():
        if name in _RESERVED:
            raise UnusableTest(f"{name} is in each world: give the program another name")
        if inspect.iscoroutine(program):
            program.close()
            raise UnusableTest(f"{name} is a coroutine: give the function, {name}={name}, which is called at each start")
        if not callable(program):
            raise UnusableTest(f"{name} is {type(program).__name__}: a program is a function")
        if any(it.default is it.empty and it.kind not in (it.VAR_POSITIONAL, it.VAR_KEYWORD) for it in _parameters(program)):
            raise UnusableTest(f"{name} needs arguments: a program is a function without any")


def _parameters(program: UserProgram) -> list[inspect.Parameter]:
    return list(inspect.signature(program).parameters.values())
