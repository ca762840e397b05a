"""A test that cannot be explored is refused with an error that shows how to write it."""

from collections.abc import Callable
from typing import Any

import pytest

from rocketmq_broker.testing.exploring import ExploredWorld, UnusableTest, explore


async def shop() -> None:
    """A shop that starts nothing."""


async def an_async_test(world: ExploredWorld) -> None:
    """A coroutine function, which is not accepted."""


def a_test_without_world() -> None:
    """A test without the parameter for the world."""


def a_test(world: ExploredWorld) -> None:
    """A test that runs nothing."""


def needs_two(one: object, other: object) -> None:
    """A function that requires arguments."""


@pytest.mark.parametrize(
    ("test", "complaint"),
    [
        (an_async_test, "an_async_test is async: an explored test must be a plain function"),
        (a_test_without_world, "has no parameter `world`: write def a_test_without_world"),
        (3, "an explored test must be a function"),
    ],
)
def test_a_function_that_cannot_be_explored_is_refused_when_it_is_decorated(test: Any, complaint: str) -> None:
    with pytest.raises(UnusableTest, match=complaint):
        explore()(test)


def test_the_decorator_without_parentheses_says_so() -> None:
    with pytest.raises(UnusableTest, match="must be called with keyword arguments only"):
        explore(a_test)  # type: ignore[call-arg]


def test_a_test_that_never_runs_its_world_is_told() -> None:
    with pytest.raises(UnusableTest, match=r"a_test never calls world\.run"):
        explore(seeds=1)(a_test)()


@pytest.mark.parametrize(
    ("programs", "complaint"),
    [
        ({}, "world.run needs at least one program"),
        ({"broker": shop}, "the name broker is reserved"),
        ({"shop": 3}, "shop is int, not a function"),
        ({"shop": needs_two}, "shop has required parameters"),
    ],
)
def test_programs_that_cannot_run_are_refused(programs: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UnusableTest, match=complaint):
        ExploredWorld(1).run(**programs)


def test_a_coroutine_in_place_of_its_function_is_refused() -> None:
    with pytest.raises(UnusableTest, match="pass the function itself, shop=shop"):
        ExploredWorld(1).run(shop=shop())  # type: ignore[arg-type]


@pytest.mark.parametrize("ask", [ExploredWorld.crash_point, ExploredWorld.may_fail, lambda world: world.requests])
def test_what_programs_ask_for_is_refused_outside_of_them(ask: Callable[[ExploredWorld], object]) -> None:
    with pytest.raises(UnusableTest, match="program"):
        ask(ExploredWorld(1))


def test_a_remote_function_needs_a_name_of_its_own() -> None:
    with pytest.raises(UnusableTest, match=r"world\.remote needs a named function"):
        ExploredWorld(1).remote(lambda: None)
    world = ExploredWorld(1)
    world.remote(needs_two)
    with pytest.raises(UnusableTest, match="the name needs_two is used twice"):
        world.run(needs_two=shop)


def test_a_database_needs_sqlalchemy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocketmq_broker.testing.exploring.databases.find_spec", lambda name: None)
    with pytest.raises(UnusableTest, match=r"world\.database needs the package sqlalchemy: pip install"):
        ExploredWorld(1).database("orders")
