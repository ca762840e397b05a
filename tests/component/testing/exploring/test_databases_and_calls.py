"""Tests of the databases and remote functions of explored worlds, with one planned fault each."""

import time
from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import Column, MetaData, String, Table, select
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from rocketmq_broker.testing.exploring import ExploredWorld, ProgramFailed, UnusableTest
from rocketmq_broker.testing.simulation.plan import Plan, PlannedEvent

METADATA = MetaData()
ROWS = Table("rows", METADATA, Column("key", String, primary_key=True))

MakeWorld = Callable[..., ExploredWorld]


@pytest.fixture
def new_world() -> Iterator[MakeWorld]:
    worlds: list[ExploredWorld] = []

    def make(*faults: PlannedEvent, requests: int = 1) -> ExploredWorld:
        asked = [PlannedEvent(1.0 + n, "request", "customer", parameters={"number": n}) for n in range(1, requests + 1)]
        worlds.append(ExploredWorld(1, Plan(1, {}, (), 30.0).with_events([*faults, *asked])))
        return worlds[-1]

    yield make
    for world in worlds:
        world.end()


def fault(what: str, where: str, for_s: float = 0.0, **parameters: object) -> PlannedEvent:
    return PlannedEvent(0.5, what, where, for_s, parameters)


# databases


def test_rows_outlive_a_program_and_an_open_transaction_does_not(new_world: MakeWorld) -> None:
    world = new_world(fault("process.kill_at_database", "shop", 1.0, nth=6, when="before"), requests=2)
    database = world.database("orders", METADATA.create_all)
    started: list[float] = []

    def shop() -> None:
        started.append(time.monotonic())
        for number in world.requests:
            with Session(database.engine) as session, session.begin():
                session.execute(ROWS.insert().values(key=f"order-{number}"))

    world.run(shop=shop)
    with Session(database.engine) as session:
        assert session.scalars(select(ROWS.c.key)).all() == ["order-1"]
    assert len(started) == 2
    assert world.fired == {"process.kill_at_database": 1}


@pytest.mark.parametrize(("when", "stored"), [("before", []), ("after", ["order-1"])])
def test_a_program_is_killed_before_or_after_its_commit(new_world: MakeWorld, when: str, stored: list[str]) -> None:
    # The four steps are the connection's, BEGIN, INSERT and COMMIT.
    world = new_world(fault("process.kill_at_database", "shop", 1.0, nth=3, when=when))
    database = world.database("orders", METADATA.create_all)

    def shop() -> None:
        for _ in world.requests:
            with Session(database.engine) as session, session.begin():
                session.execute(ROWS.insert().values(key="order-1"))

    world.run(shop=shop)
    with Session(database.engine) as session:
        assert session.scalars(select(ROWS.c.key)).all() == stored


def attempts_of(world: ExploredWorld) -> tuple[list[object], list[str]]:
    """Stores one row in a database with faults. Returns the errors and times of the attempts, and the stored keys."""
    database, seen = world.database("orders", METADATA.create_all), []

    def shop() -> None:
        for number in world.requests:
            begun_s = time.monotonic()
            try:
                with Session(database.engine) as session, session.begin():
                    session.execute(ROWS.insert().values(key=f"order-{number}"))
            except OperationalError as error:
                seen.append(str(error.orig))
            else:
                seen.append(round(time.monotonic() - begun_s))

    world.run(shop=shop)
    with Session(database.engine) as session:
        return seen, list(session.scalars(select(ROWS.c.key)))


def test_a_commit_is_stored_though_its_response_is_lost(new_world: MakeWorld) -> None:
    assert attempts_of(new_world(fault("database.lost_answer", "orders", nth=1))) == (["disk I/O error"], ["order-1"])


def test_a_database_refuses_hangs_and_is_locked(new_world: MakeWorld) -> None:
    assert attempts_of(new_world(fault("database.refuse", "orders", 5.0, rate=1.0))) == (["disk I/O error"], [])
    assert attempts_of(new_world(fault("database.hang", "orders", 9.5))) == ([8], ["order-1"])
    assert attempts_of(new_world(fault("database.locked", "orders", 7.5))) == ([6], ["order-1"])
    assert attempts_of(new_world(fault("database.locked", "orders", 25.0))) == (["database is locked"], [])


def test_an_error_of_a_fault_restarts_a_program_and_a_mistake_fails_the_world(new_world: MakeWorld) -> None:
    world = new_world(fault("database.refuse", "orders", 5.0, rate=1.0))
    database = world.database("orders", METADATA.create_all)

    def careless() -> None:
        for _ in world.requests:
            with Session(database.engine) as session:
                session.execute(select(ROWS))

    world.run(shop=careless)
    assert world.fired == {"database.refuse": 1}

    world = new_world()
    database = world.database("orders")  # without tables
    with pytest.raises(ProgramFailed, match="no such table: rows"):
        world.run(shop=careless)


def test_a_database_has_a_name_of_its_own_and_is_created_before_the_run() -> None:
    world = ExploredWorld(1)
    world.database("shop")
    with pytest.raises(UnusableTest, match="the world already has a database shop"):
        world.database("shop")
    with pytest.raises(UnusableTest, match="the name shop is used twice"):
        world.run(shop=lambda: None)
    world.run(bank=lambda: None)
    for late in (lambda: world.database("orders"), lambda: world.remote(test_a_call_returns_its_result)):
        with pytest.raises(UnusableTest, match=r"must be called before world\.run"):
            late()
    world.end()


# remote functions


def calls_of(world: ExploredWorld) -> tuple[list[object], list[str]]:
    """Calls a remote function for each request. Returns the results or errors, and the executed calls."""
    executed: list[str] = []
    seen: list[object] = []

    @world.remote
    def credit(order: str) -> str:
        executed.append(order)
        return f"credited {order}"

    def shop() -> None:
        for number in world.requests:
            try:
                seen.append(credit(order=f"order-{number}"))
            except OSError as error:
                seen.append(type(error).__name__)

    world.run(shop=shop, bank=credit.serve)
    return seen, executed


def test_a_call_returns_its_result(new_world: MakeWorld) -> None:
    assert calls_of(new_world(requests=2)) == (["credited order-1", "credited order-2"], ["order-1", "order-2"])


@pytest.mark.parametrize(
    ("planned", "seen", "executed"),
    [
        (fault("call.lost", "credit", nth=1), "TimeoutError", []),
        (fault("call.response_lost", "credit", nth=1), "TimeoutError", ["order-1"]),
        (fault("call.doubled", "credit", nth=1, delay_s=2.0), "credited order-1", ["order-1", "order-1"]),
        (fault("call.late", "credit", nth=1, delay_s=9.0), "TimeoutError", ["order-1"]),
        (fault("call.late", "credit", nth=1, delay_s=2.0), "credited order-1", ["order-1"]),
        (fault("process.kill", "bank", 5.0), "ConnectionRefusedError", []),
    ],
)
def test_a_fault_of_a_call(new_world: MakeWorld, planned: PlannedEvent, seen: str, executed: list[str]) -> None:
    world = new_world(planned)
    assert calls_of(world) == ([seen], executed)
    assert world.fired == {planned.what: 1}


def test_a_call_to_a_program_that_dies_is_reset(new_world: MakeWorld) -> None:
    world, seen = new_world(PlannedEvent(3.0, "process.kill", "bank", 1.0)), []

    @world.remote
    def slow() -> None:
        time.sleep(3)

    def shop() -> None:
        for _ in world.requests:
            with pytest.raises(ConnectionResetError, match="the program that serves slow died"):
                slow()
            seen.append("reset")

    world.run(shop=shop, bank=slow.serve)
    assert seen == ["reset"]


def test_an_error_of_the_function_is_raised_at_the_caller(new_world: MakeWorld) -> None:
    world = new_world()

    @world.remote
    def refuse(order: str) -> None:
        raise ValueError(f"no customer of {order}")

    def shop() -> None:
        for _ in world.requests:
            refuse("order-1")

    with pytest.raises(ProgramFailed, match=r"RemoteCallFailed: refuse raised ValueError: no customer of order-1"):
        world.run(shop=shop, bank=refuse.serve)


def test_a_task_waits_for_a_program_and_its_error_ends_that_program(new_world: MakeWorld) -> None:
    world, executed = new_world(fault("process.kill", "bank", 9.0)), []

    @world.remote
    def work(order: str) -> None:
        executed.append((order, round(time.monotonic()) > 1_000_005))

    def shop() -> None:
        for _ in world.requests:
            work.send(order="order-1")

    world.run(shop=shop, bank=work.serve)
    assert executed == [("order-1", True)]

    world = new_world()

    @world.remote
    def fail() -> None:
        raise ValueError("no ledger")

    def careless() -> None:
        for _ in world.requests:
            fail.send()

    with pytest.raises(ProgramFailed, match="bank ended with ValueError: no ledger"):
        world.run(shop=careless, bank=fail.serve)


def test_coroutine_functions_call_and_are_called(new_world: MakeWorld) -> None:
    world, seen = new_world(), []

    @world.remote
    async def double(number: int) -> int:
        return 2 * number

    async def shop() -> None:
        async for number in world.requests:
            seen.append(await double.call(number=number))

    world.run(shop=shop, bank=double.serve)
    assert seen == [2]
