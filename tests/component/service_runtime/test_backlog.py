"""Tests of the readiness check, health report and metrics of an inbox."""

from collections.abc import Callable, Sequence

import pytest
from prometheus_client import CollectorRegistry
from sqlmodel import Session

from rocketmq_broker.databases.inbox import InboxMessage
from rocketmq_broker.databases.sqlalchemy import Inbox
from rocketmq_broker.message import Message
from service_runtime.inbox.backlog import MAX_AGE_S, InboxBacklog, InboxHealth
from tests.passing_time import Clock


@pytest.fixture
def backlog(inbox: Inbox[Session], clock: Clock) -> InboxBacklog:
    return InboxBacklog(inbox, "a_service", lambda: clock.now_ms)


@pytest.fixture
def metric(backlog: InboxBacklog) -> Callable[[str], float | None]:
    registry = CollectorRegistry()
    registry.register(backlog)
    return lambda name: registry.get_sample_value(f"a_inbox_{name}")


def refusing(*texts: str) -> Callable[[Session, Sequence[InboxMessage]], None]:
    def handle(_: Session, messages: Sequence[InboxMessage]) -> None:
        for message in messages:
            if message.text in texts or not texts:
                raise ValueError(f"refused: {message.text}")

    return handle


def put(inbox: Inbox[Session], *texts: str) -> None:
    inbox.put([Message.of("orders", text) for text in texts])


def test_an_empty_inbox_is_healthy(backlog: InboxBacklog, metric: Callable[[str], float | None]) -> None:
    state = backlog.state()
    assert (backlog.why_unready(), backlog.attention(state)) == (None, [])
    assert backlog.health(state) == InboxHealth(waiting=0, failed=0, parked=0, oldest_s=None, last_error=None)
    assert [metric(name) for name in ("waiting", "failed", "parked", "oldest_seconds")] == [0, 0, 0, 0]


def test_new_messages_are_a_fault_once_the_oldest_is_too_old(backlog: InboxBacklog, inbox: Inbox[Session], clock: Clock) -> None:
    put(inbox, "1")
    clock.pass_s(MAX_AGE_S)
    assert backlog.why_unready() is None
    clock.pass_s(1)
    put(inbox, "2")
    assert backlog.why_unready() == "2 messages wait to be processed, the oldest for 31 s"


def test_one_message_that_fails_asks_for_attention_and_is_no_fault(
    backlog: InboxBacklog, inbox: Inbox[Session], clock: Clock, metric: Callable[[str], float | None]
) -> None:
    put(inbox, "bad")
    inbox.drain(refusing("bad"))
    clock.pass_s(MAX_AGE_S + 30)
    put(inbox, "good")
    inbox.drain(refusing("bad"))
    clock.pass_s(1)
    assert backlog.why_unready() is None
    assert backlog.attention(backlog.state()) == ["1 messages fail, and are tried again: ValueError: refused: bad"]
    health = backlog.health(backlog.state())
    assert health == InboxHealth(waiting=1, failed=1, parked=0, oldest_s=61.0, last_error="ValueError: refused: bad")
    assert (metric("failed"), metric("oldest_seconds")) == (1, 61)


def test_several_messages_that_fail_while_none_passes_are_a_fault_after_some_seconds(
    backlog: InboxBacklog, inbox: Inbox[Session], clock: Clock
) -> None:
    put(inbox, "1", "2")
    inbox.drain(refusing())
    assert backlog.why_unready() is None
    clock.pass_s(6)
    why = backlog.why_unready()
    assert why is not None
    assert why.startswith("2 messages fail, and none is processed: ValueError: refused: ")


def test_several_messages_that_fail_while_others_pass_are_no_fault(
    backlog: InboxBacklog, inbox: Inbox[Session], clock: Clock
) -> None:
    put(inbox, "1", "2")
    for number in range(3):
        inbox.drain(refusing("1", "2"))
        clock.pass_s(6)
        put(inbox, f"good {number}")
    state = backlog.state()
    assert state is not None
    assert (state.failed, state.suspected, backlog.why_unready()) == (2, 2, None)


def test_parked_messages_ask_for_attention_with_the_commands_and_dismissed_ones_do_not(
    backlog: InboxBacklog, inbox: Inbox[Session], metric: Callable[[str], float | None]
) -> None:
    put(inbox, "bad")
    inbox.drain(refusing("bad"), max_tries=0)
    (line,) = backlog.attention(backlog.state())
    assert "`python -m a_service inbox list`" in line
    assert "`python -m a_service inbox retry`" in line
    assert (metric("parked"), metric("waiting"), backlog.why_unready()) == (1, 0, None)
    inbox.dismiss([inbox.parked()[0].key])
    assert (metric("parked"), backlog.attention(backlog.state())) == (0, [])


def test_an_unavailable_database_is_left_to_its_own_check(
    backlog: InboxBacklog, inbox: Inbox[Session], metric: Callable[[str], float | None]
) -> None:
    with inbox._transaction() as session:
        session.connection().exec_driver_sql("ALTER TABLE rocketmq_inbox RENAME TO gone")
    assert (backlog.state(), backlog.why_unready()) == (None, None)
    assert (backlog.health(None), backlog.attention(None), metric("waiting")) == (None, [], None)
