"""Tests of `python -m SERVICE inbox` on SQLite and PostgreSQL. They call main() in the test's process."""

import re
from collections.abc import Callable, Iterator

import pytest
from sqlmodel import Session

from credit_service.entrypoints.process import SERVICE as CREDITS
from inventory_service.entrypoints.process import SERVICE as INVENTORY
from rocketmq_broker.databases.sqlalchemy import Inbox
from rocketmq_broker.message import Message
from service_runtime.database.engine import create_database_engine
from service_runtime.database.opening import open_database
from service_runtime.database.sessions import Sessions
from service_runtime.service import Service
from tests.passing_time import Clock

Run = Callable[..., tuple[int, list[str]]]


@pytest.fixture(params=[CREDITS, INVENTORY], ids=lambda service: service.program)
def service(request: pytest.FixtureRequest) -> Service:  # type: ignore[type-arg]
    found: Service = request.param  # type: ignore[type-arg]
    return found


@pytest.fixture
def run(
    service: Service,  # type: ignore[type-arg]
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    run_main: Callable[..., tuple[int, str]],
) -> Run:
    """Returns a function that runs the command with arguments. It returns the exit code and the printed lines."""
    prefix = service.program.removesuffix("_service").upper()
    monkeypatch.setenv(f"{prefix}_DATABASE_URL", database_url)
    monkeypatch.setenv(f"{prefix}_DATABASE_START_TIMEOUT_S", "0.1")

    def main(*arguments: str) -> tuple[int, list[str]]:
        status, shown = run_main(service.main, service.program, "inbox", *arguments)
        return status, shown.splitlines()

    return main


@pytest.fixture
def inbox(service: Service, database_url: str, clock: Clock) -> Iterator[Inbox[Session]]:  # type: ignore[type-arg]
    """Yields an inbox with two parked messages and a waiting one. The keys of the parked messages contain escape sequences."""
    engine = open_database(database_url, migrations=service.migrations, start_timeout_s=10)
    world = clock.world()
    sessions = Sessions(engine, now_s=world.steady_s, acquire=None)
    inbox = Inbox(sessions.writing, service.program, world, reading=sessions.reading)

    def refuse(_: Session, __: object) -> None:
        raise ValueError("no\x1b[2J\nDETAIL: of customer carol")

    inbox.put([Message.of("orders", text, keys=[f"order-{text}\x1b[2J"]) for text in ("1", "2")])
    inbox.drain(refuse, max_tries=0)
    inbox.put([Message.of("orders", "3")])
    yield inbox
    engine.dispose()


def test_parked_messages_are_listed_with_their_reason_and_nothing_that_the_terminal_obeys(
    run: Run, inbox: Inbox[Session]
) -> None:
    status, lines = run("list")
    assert (status, len(lines)) == (0, 2)
    keys = {message.key for message in inbox.parked()}
    assert {line.split()[0] for line in lines} == keys
    assert all(
        re.search(r"orders order-[12].*since 2027-01-15T08:00:00\S*, \d+ failures: ValueError: no", line) for line in lines
    )
    assert not any("\x1b" in line or "carol" in line for line in lines)


def test_all_or_some_messages_are_tried_again(run: Run, inbox: Inbox[Session]) -> None:
    first, _ = inbox.parked()
    assert run("retry", first.key) == (0, ["1 messages are tried again"])
    assert (inbox.state().parked, inbox.state().new) == (1, 2)
    assert run("retry") == (0, ["1 messages are tried again"])
    assert run("list") == (0, ["no message is parked"])


def test_dismissed_messages_are_kept_and_no_longer_listed(run: Run, inbox: Inbox[Session]) -> None:
    first, second = inbox.parked()
    assert run("dismiss", first.key) == (0, ["1 messages are dismissed"])
    assert inbox.state().new == 1, "the one that waited before: a dismissed message is not tried again"
    assert [message.key for message in inbox.parked()] == [second.key]
    assert run("retry", first.key) == (0, ["0 messages are tried again"])


def test_dismissing_all_by_an_omitted_key_is_refused(run: Run, inbox: Inbox[Session]) -> None:
    status, lines = run("dismiss")
    assert (status, "dismiss requires the keys of messages; run `list` to print them" in lines[-1]) == (2, True)
    assert inbox.state().parked == 2


@pytest.mark.parametrize("arguments", [["lst"], []])
def test_an_unknown_action_is_refused_with_a_sentence(run: Run, arguments: list[str]) -> None:
    status, lines = run(*arguments)
    assert (status, "action" in lines[-1].lower()) == (2, True)


def test_a_database_without_the_tables_is_not_changed(run: Run, database_url: str) -> None:
    status, lines = run("list")
    assert status == 1
    assert "migrate" in lines[-1]
    engine = create_database_engine(database_url)
    with engine.connect() as connection:
        assert not engine.dialect.has_table(connection, "rocketmq_inbox")
    engine.dispose()
