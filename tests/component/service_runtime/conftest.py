"""Fixtures with an inbox on SQLite and on PostgreSQL."""

import signal
import sys
from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import Engine, MetaData
from sqlmodel import Session

from rocketmq_broker.databases.sqlalchemy import Inbox, add_inbox
from rocketmq_broker.stop_signals import STOP_SIGNALS
from service_runtime.database.engine import create_database_engine
from service_runtime.database.sessions import Sessions
from tests.passing_time import Clock

METADATA = MetaData()
add_inbox(METADATA)


@pytest.fixture
def signals_restored() -> Iterator[None]:
    """Restores the handlers of the stop signals after the test."""
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def run_main(
    signals_restored: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Returns a function that runs a program's main() with arguments. It returns the exit code and the output."""

    def run(main: Callable[[], int], program: str, *arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", [program, *arguments])
        capsys.readouterr()
        try:
            status = main()
        except SystemExit as ended:
            status = int(str(ended.code or 0))
        shown = capsys.readouterr()
        return status, shown.out + shown.err

    return run


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
