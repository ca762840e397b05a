"""Fixtures with an inbox on SQLite and on PostgreSQL."""

from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import Engine, MetaData
from sqlmodel import Session

from rocketmq_broker.databases.sqlalchemy import Inbox, add_inbox
from service_runtime.database.engine import create_database_engine
from service_runtime.database.sessions import Sessions
from tests.passing_time import Clock

METADATA = MetaData()
add_inbox(METADATA)


@pytest.fixture
def inbox_engine(database_url: str) -> Iterator[Engine]:
    engine = create_database_engine(database_url)
    METADATA.create_all(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def inbox_of(inbox_engine: Engine, clock: Clock) -> Callable[[str], Inbox[Session]]:
    """Returns a function that returns the inbox of a consumer."""
    world = clock.world()
    sessions = Sessions(inbox_engine, now_s=world.steady_s, acquire=None)
    return lambda consumer: Inbox(sessions.writing, consumer, world, reading=sessions.reading)


@pytest.fixture
def inbox(inbox_of: Callable[[str], Inbox[Session]]) -> Inbox[Session]:
    return inbox_of("consumer")
