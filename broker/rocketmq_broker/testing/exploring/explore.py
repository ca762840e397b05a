"""The decorator that runs a test in many worlds (simulated runs), one for each seed, until the test fails in one of them."""

from __future__ import annotations

import inspect
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Final

from rocketmq_broker.testing.exploring.errors import UnusableTest, WorldFailed
from rocketmq_broker.testing.exploring.failure import PlayedTest, report, shrunk
from rocketmq_broker.testing.exploring.fault_rows import FAULTS
from rocketmq_broker.testing.exploring.world import ExploredWorld
from rocketmq_broker.testing.simulation.page.markup import counted
from rocketmq_broker.testing.simulation.plan import Plan, UnreadablePlan, read_plan

_WORLD: Final = "world"
_FAILED_OUTCOMES: Final = frozenset({"Failed", "XFailed"})
"""The names of pytest's outcome exceptions, which do not derive from Exception, that count as failures."""

AnyTest = Callable[..., object]


@dataclass(frozen=True, slots=True)
class Exploration:
    """The result of an exploration in which no world failed."""

    worlds: int
    seconds: float
    fired: Counter[str]
    never_fired: tuple[str, ...]
    """The kinds of faults that had no effect in any world. The test does not cover these faults."""

    def __str__(self) -> str:
        """Returns a summary of a few lines."""
        fired = ", ".join(f"{kind} {self.fired[kind]}" for kind in FAULTS if self.fired[kind])
        never = f"\nnever fired: {', '.join(self.never_fired)}" if self.never_fired else ""
        speed = self.worlds / max(self.seconds, 1e-3)
        return f"{counted(self.worlds, 'world')} passed, {speed:.1f} per second\nfired: {fired or 'nothing'}{never}"


def explore(
    *misplaced: object,
    seeds: int = 200,
    first_seed: int = 1,
    seed: int | None = None,
    plan: str | Sequence[str] | None = None,
    shrinking_s: float = 20.0,
    shrinking_tries: int = 300,
    output: str | Path = "build",
) -> Callable[[AnyTest], Callable[..., None]]:
    """Decorates a test function with a parameter `world`. The test runs once for each seed, with a world of that seed.

    `seed` selects one world. `plan` replays plans that were printed for earlier failures. pytest passes fixtures to the other
    parameters, once for all worlds. Without pytest, call the decorated function: it prints the faults that had an effect, and
    raises WorldFailed.

    The plan of the first failing world is shrunk for at most `shrinking_s` real seconds and `shrinking_tries` worlds. `output` is
    the folder for the HTML page about this world. Raises UnusableTest for a function that cannot be explored.
    """
    if misplaced:
        raise UnusableTest("@explore must be called with keyword arguments only: write @explore() or @explore(seeds=200)")
    plans = _read([plan] if isinstance(plan, str) else plan)
    wanted = range(first_seed, first_seed + seeds) if seed is None else range(seed, seed + 1)

    def decorate(test: AnyTest) -> Callable[..., None]:
        _check(test)

        @wraps(test)
        def explored(*args: Any, **named: Any) -> None:
            def play(plan: Plan, is_recorded: bool) -> PlayedTest:
                return _played(test, ExploredWorld(plan.seed, plan, is_recorded=is_recorded), args, named)

            def fail(failed: PlayedTest) -> None:
                __tracebackhide__ = True  # pytest then shows the test's own lines
                found = shrunk(failed, play, tries=shrinking_tries, seconds=shrinking_s)
                text = report(failed, play, found, Path(output), test.__name__)
                raise WorldFailed(text) from failed.error

            worlds = (ExploredWorld(one.seed, one) for one in plans) if plans else (ExploredWorld(one) for one in wanted)
            found = _searched((_played(test, world, args, named) for world in worlds), fail)
            sys.stdout.write(f"{found}\n")

        explored.__signature__ = _without_world(test)  # type: ignore[attr-defined]
        return explored

    return decorate


def _searched(played: Iterable[PlayedTest], fail: Callable[[PlayedTest], None]) -> Exploration:
    __tracebackhide__ = True
    begun_s, count, fired, without_place = time.monotonic(), 0, Counter[str](), set(FAULTS)
    for one in played:
        count += 1
        if one.error is not None:
            fail(one)
        fired += one.world.fired
        without_place &= one.world.kinds_without_place
    never = tuple(kind for kind in FAULTS if not fired[kind] and kind not in without_place)
    return Exploration(count, time.monotonic() - begun_s, fired, never)


def _played(test: AnyTest, world: ExploredWorld, args: tuple[Any, ...], named: dict[str, Any]) -> PlayedTest:
    try:
        test(*args, **named, world=world)
    except (UnusableTest, UnreadablePlan):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ not in _FAILED_OUTCOMES:
            raise
        if not world.has_run:
            raise
        return PlayedTest(world, error)
    finally:
        world.end()
    if not world.has_run:
        raise UnusableTest(f"{test.__name__} never calls world.run: call it once with the test's programs")
    return PlayedTest(world, None)


def _read(texts: Sequence[str] | None) -> list[Plan]:
    return [read_plan(text) for text in texts or ()]


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
