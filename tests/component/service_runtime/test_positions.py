"""Tests of positions in a database that is reset to an older state, on SQLite and PostgreSQL."""

from collections.abc import Collection, Iterator
from dataclasses import asdict

import pytest
from sqlalchemy import Column, Engine, MetaData, Table, Text, select
from sqlmodel import Session

from rocketmq_broker.client import MessageQueue
from rocketmq_broker.world import World
from service_runtime.database.database_errors import DatabaseUnavailable
from service_runtime.database.engine import create_database_engine
from service_runtime.database.sessions import Sessions
from service_runtime.messaging.positions import Positions, PositionTables

METADATA = MetaData()
RESULTS = Table("results", METADATA, Column("name", Text, primary_key=True))
TABLES = PositionTables.of(METADATA)
POSITIONS = TABLES.positions
QUEUE, OTHER = MessageQueue("orders", "broker-a", 0), MessageQueue("orders", "broker-a", 1)


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = create_database_engine(database_url)
    METADATA.create_all(engine)
    yield engine
    METADATA.drop_all(engine)
    engine.dispose()


@pytest.fixture
def positions(engine: Engine) -> Positions[str]:
    return new_positions(engine)


def new_positions(engine: Engine) -> Positions[str]:
    world = World()
    sessions = Sessions(engine, now_s=world.steady_s, acquire=None)
    return Positions(sessions, TABLES, has_all=has_all, service="credit", to_do="Look into it")


def has_all(session: Session, names: Collection[str]) -> bool:
    return set(names) <= set(session.connection().scalars(select(RESULTS.c.name)))


def write(engine: Engine, *names: str) -> None:
    with engine.begin() as connection:
        connection.execute(RESULTS.insert(), [{"name": name} for name in names])


def processed(engine: Engine, positions: Positions[str], name: str) -> None:
    write(engine, name)
    positions.acknowledging([name])


def goes_back(engine: Engine, *, positions: dict[MessageQueue, int], results: Collection[str] = ()) -> None:
    with engine.begin() as connection:
        connection.execute(POSITIONS.delete())
        connection.execute(RESULTS.delete())
        for queue, offset in positions.items():
            connection.execute(POSITIONS.insert().values(**asdict(queue), next_offset=offset))
        for name in results:
            connection.execute(RESULTS.insert().values(name=name))


def test_positions_are_there_for_the_next_process(engine: Engine, positions: Positions[str]) -> None:
    assert positions.read(QUEUE) is None
    assert positions.save({QUEUE: 5, OTHER: 0}) == {}
    assert positions.save({QUEUE: 7, OTHER: 0}) == {}
    later = new_positions(engine)
    assert (later.read(QUEUE), later.read(OTHER)) == (7, 0)


def test_a_database_without_a_position_that_was_saved_went_back(engine: Engine, positions: Positions[str]) -> None:
    positions.save({QUEUE: 5, OTHER: 3})
    positions.save({QUEUE: 9, OTHER: 3})
    goes_back(engine, positions={QUEUE: 5, OTHER: 3})
    assert positions.save({QUEUE: 9, OTHER: 3}) == {QUEUE: 5, OTHER: 3}
    assert new_positions(engine).read(QUEUE) == 5


def test_a_database_that_lost_only_what_came_after_the_last_position_went_back(engine: Engine, positions: Positions[str]) -> None:
    processed(engine, positions, "first")
    positions.save({QUEUE: 1})
    processed(engine, positions, "second")
    goes_back(engine, positions={QUEUE: 1}, results=["first"])
    assert positions.save({QUEUE: 2}) == {QUEUE: 1}


def test_results_that_came_after_the_loss_do_not_hide_it(engine: Engine, positions: Positions[str]) -> None:
    """A lagging standby is promoted and takes further results before the next save."""
    processed(engine, positions, "first")
    positions.save({QUEUE: 1})
    positions.acknowledging(["lost"])
    processed(engine, positions, "third")
    assert positions.save({QUEUE: 3}) == {QUEUE: 1}


def test_results_that_a_save_found_and_no_position_covers_are_missed_later(engine: Engine, positions: Positions[str]) -> None:
    positions.save({QUEUE: 1})
    processed(engine, positions, "second")  # the first message of the queue is not acknowledged yet
    assert positions.save({QUEUE: 1}) == {}
    goes_back(engine, positions={QUEUE: 1}, results=["third"])
    positions.acknowledging(["third"])
    assert positions.save({QUEUE: 3}) == {QUEUE: 1}


def test_after_the_messages_came_again_all_is_well(engine: Engine, positions: Positions[str]) -> None:
    processed(engine, positions, "first")
    positions.save({QUEUE: 1})
    goes_back(engine, positions={})
    assert positions.save({QUEUE: 1}) == {QUEUE: None}
    positions.forget_results()
    positions.forget(QUEUE)
    processed(engine, positions, "first")
    assert positions.save({QUEUE: 1}) == {}
    assert positions.read(QUEUE) == 1


def test_results_that_are_never_there_do_not_bring_messages_again_for_ever(positions: Positions[str]) -> None:
    """If results are never found, the messages are delivered again once. Then saving raises DatabaseUnavailable.

    This is the case if the workers write to a different database than the one that the service reads.
    """
    positions.acknowledging(["elsewhere"])
    assert positions.save({QUEUE: 1}) == {QUEUE: None}
    positions.forget_results()
    positions.acknowledging(["elsewhere"])
    with pytest.raises(DatabaseUnavailable, match="check that the workers use the same database"):
        positions.save({QUEUE: 1})


def test_a_member_that_is_late_does_not_lower_the_position_of_the_next_owner(engine: Engine, positions: Positions[str]) -> None:
    positions.save({QUEUE: 5})
    next_owner = new_positions(engine)
    next_owner.save({QUEUE: 3})
    assert next_owner.read(QUEUE) == 5
    next_owner.save({QUEUE: 8})
    assert positions.save({QUEUE: 6}) == {}
    assert positions.read(QUEUE) == 8


def test_a_queue_that_begins_again_at_its_broker_begins_again_here(positions: Positions[str]) -> None:
    positions.save({QUEUE: 500})
    positions.begin_again(QUEUE)
    assert positions.save({QUEUE: 0}) == {}
    assert positions.read(QUEUE) == 0


def test_a_database_that_does_not_answer_saves_nothing_and_forgets_nothing(engine: Engine, positions: Positions[str]) -> None:
    positions.save({QUEUE: 5})
    with engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE consumed_positions RENAME TO elsewhere")
    with pytest.raises(DatabaseUnavailable):
        positions.save({QUEUE: 9})
    with engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE elsewhere RENAME TO consumed_positions")
    goes_back(engine, positions={QUEUE: 2})
    assert positions.save({QUEUE: 9}) == {QUEUE: 2}
