"""The decorator that runs a test in many worlds (simulated runs), one for each seed, until the test fails in one of them."""

import inspect
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, wraps
from pathlib import Path
from typing import Any, Final

from rocketmq_broker.testing.exploring.drawing import one_line
from rocketmq_broker.testing.exploring.errors import PromisesBroken, UnusableTest, WorldFailed
from rocketmq_broker.testing.exploring.fault_rows import FAULTS
from rocketmq_broker.testing.exploring.search.report import described_totals, shrink_failure, write_failure
from rocketmq_broker.testing.exploring.search.standing import PlayedSeed, Totals
from rocketmq_broker.testing.exploring.search.worlds import FoundBroken, WorldEnd, WorldKind, Worlds, failed_among
from rocketmq_broker.testing.exploring.world import ExploredWorld, PlanDrawn
from rocketmq_broker.testing.simulation.plan import Plan, UnreadablePlan, read_plan

_WORLD: Final = "world"
_FAILED_OUTCOMES: Final = frozenset({"Failed", "XFailed"})
"""The names of pytest's outcome exceptions, which do not derive from Exception, that count as failures."""

_PROGRAMS: Final = WorldKind(kinds=FAULTS, lanes=("customer", "", "broker", "names"))
"""The worlds that `ExploredWorld.run` runs, with the programs of a test."""

AnyTest = Callable[..., object]


def explore(
    *misplaced: object,
    seeds: int = 200,
    first_seed: int = 1,
    seed: int | None = None,
    plan: str | Sequence[str] | None = None,
    shrinking_s: float = 20.0,
    shrinking_tries: int = 300,
    output: str | Path = "build",
    kind: WorldKind = _PROGRAMS,
) -> Callable[[AnyTest], Callable[..., None]]:
    """Decorates a test function with a parameter `world`. The test runs once for each seed, with a world of that seed.

    `seed` selects one world. `plan` replays plans that were printed for earlier failures. pytest passes fixtures to the other
    parameters, once for all worlds. Without pytest, call the decorated function: it prints the faults that had an effect, and
    raises WorldFailed.

    The plan of the first failing world is shrunk for at most `shrinking_s` real seconds and `shrinking_tries` worlds. `output` is
    the folder for the HTML page about this world. `kind` describes worlds that `ExploredWorld.play` runs.

    Raises UnusableTest for a function that cannot be explored.
    """
    if misplaced:
        raise UnusableTest("@explore must be called with keyword arguments only: write @explore() or @explore(seeds=200)")
    plans = [read_plan(text) for text in ([plan] if isinstance(plan, str) else plan or ())]
    wanted = range(first_seed, first_seed + seeds) if seed is None else range(seed, seed + 1)

    def decorate(test: AnyTest) -> Callable[..., None]:
        _check(test)

        @wraps(test)
        def explored(*args: Any, **named: Any) -> None:
            __tracebackhide__ = True  # pytest then shows the test's own lines
            one = _ExploredTest(test, kind, args, named)
            worlds = Worlds(one.name, kind, one.plan_of, one.play)
            totals = Totals()
            begun_s = time.monotonic()
            for failed in failed_among(
                (worlds.play(one, False) for one in plans or wanted), lambda end: totals.add(PlayedSeed.of(end))
            ):
                found = shrink_failure(worlds, failed, worlds.play, tries=shrinking_tries, seconds=shrinking_s)
                again = f"@explore(plan={one_line(found.shrunk.plan)!r})"
                text = write_failure(worlds, found, Path(output) / f"{worlds.file_name(failed.seed)}.html", again)
                raise WorldFailed(text) from failed.error
            for line in described_totals(totals, time.monotonic() - begun_s):
                sys.stdout.write(f"{line}\n")

        explored.test = _ExploredTest(test, kind)  # type: ignore[attr-defined]
        explored.__signature__ = _without_world(test)  # type: ignore[attr-defined]
        return explored

    return decorate


def worlds_of(explored: Callable[..., None]) -> Worlds:
    """Returns the worlds of a decorated test, for other processes. Raises UnusableTest if the test needs pytest's fixtures."""
    test = getattr(explored, "test", None)
    if not isinstance(test, _ExploredTest):
        raise UnusableTest(f"{explored!r} is not a test: it must be a function with the decorator @explore")
    if names := list(inspect.signature(explored).parameters):
        raise UnusableTest(f"{test.name} needs pytest for its parameter `{names[0]}`: only `{_WORLD}` is possible here")
    return Worlds(test.name, test.kind, partial(_plan_of, explored), partial(_play, explored))


def _plan_of(explored: Any, seed: int) -> Plan:
    return explored.test.plan_of(seed)  # type: ignore[no-any-return]


def _play(explored: Any, plan: Plan | int, is_recorded: bool) -> WorldEnd:
    return explored.test.play(plan, is_recorded)  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class _ExploredTest:
    function: AnyTest
    kind: WorldKind
    args: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)
    """The values of the parameters other than `world`."""

    @property
    def name(self) -> str:
        return self.function.__name__

    def plan_of(self, seed: int) -> Plan:
        """Returns the plan of a seed. Runs the test as far as its call of `world.run`."""
        if self.kind.draw is not None:
            return self.kind.draw(seed)
        world = ExploredWorld(seed, is_only_drawn=True)
        try:
            self._call(world)
        except PlanDrawn:
            return world.plan
        finally:
            world.end()
        raise self._not_run()

    def play(self, plan: Plan | int, is_recorded: bool) -> WorldEnd:
        """Runs the test in the world of a plan or a seed. `is_recorded` records all messages in the history."""
        if isinstance(plan, int) and self.kind.draw is not None:
            plan = self.kind.draw(plan)
        world = ExploredWorld.of(plan, is_recorded=is_recorded)
        error: BaseException | None = None
        try:
            self._call(world)
        except (UnusableTest, UnreadablePlan):
            raise
        except BaseException as raised:
            if not world.has_run or not (isinstance(raised, Exception | SystemExit) or type(raised).__name__ in _FAILED_OUTCOMES):
                raise
            error = raised
        finally:
            world.end()
        if not world.has_run:
            raise self._not_run()
        return world.ended(tuple(_broken(error, world)), error, self.kind.kinds)

    def _call(self, world: ExploredWorld) -> None:
        self.function(*self.args, **self.named, world=world)

    def _not_run(self) -> UnusableTest:
        return UnusableTest(f"{self.name} never calls world.run: call it once with the test's programs")


def _broken(error: BaseException | None, world: ExploredWorld) -> Iterator[FoundBroken]:
    """Yields the violations of an error. An error without violations is one, with the message keys that occur in its text."""
    if isinstance(error, PromisesBroken):
        yield from error.broken
    elif error is not None:
        text = str(error)
        known = dict.fromkeys(key for it in world.history.happenings for key in it.keys)
        keys = tuple(key for key in known if key in text)
        yield FoundBroken("", f"{type(error).__name__}: {text}", keys, raised_at=tuple(_places(error)))


def _places(error: BaseException | None) -> Iterator[str]:
    while error is not None:
        yield type(error).__name__
        if frames := traceback.extract_tb(error.__traceback__):
            yield f"{frames[-1].filename}:{frames[-1].lineno}"
        error = error.__cause__


def _check(test: AnyTest) -> None:
    name = getattr(test, "__name__", repr(test))
    if not callable(test):
        raise UnusableTest(f"an explored test must be a function, not {name}")
    if inspect.iscoroutinefunction(test):
        raise UnusableTest(f"{name} is async: an explored test must be a plain function, but its programs may be async")
    if _WORLD not in inspect.signature(test).parameters:
        raise UnusableTest(f"{name} has no parameter `{_WORLD}`: write def {name}({_WORLD}):")


def _without_world(test: AnyTest) -> inspect.Signature:
    signature = inspect.signature(test)
    left = [parameter for name, parameter in signature.parameters.items() if name != _WORLD]
    return signature.replace(parameters=left)
