"""Tests check-backs: which listener is called, what is sent to the broker, and which checks are dropped."""

import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from rocketmq_broker.client import LocalTransactionState
from rocketmq_broker.client.push.listener_runners import Runners
from rocketmq_broker.client.transaction.check_answers import CheckAnswers
from rocketmq_broker.client.transaction.topic_listeners import TopicListeners
from rocketmq_broker.message import Message, MessageExt
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_request
from rocketmq_broker.protocol.headers.transaction import CheckTransactionStateRequestHeader, EndTransactionRequestHeader
from rocketmq_broker.world import World
from tests.stored_records import encoded
from tests.unit.client.peers import decoded
from tests.waiting import until

COMMIT, ROLLBACK, UNKNOWN = LocalTransactionState


class Connection:
    peer = "127.0.0.1:10911"

    def __init__(self) -> None:
        self.told: list[EndTransactionRequestHeader] = []

    def invoke_oneway(self, code: int, header: EndTransactionRequestHeader, *, remark: str | None = None) -> None:
        assert code == RequestCode.END_TRANSACTION
        self.told.append(header)


class Listener:
    def __init__(self) -> None:
        self.gate = threading.Event()
        self.asked: list[str | None] = []
        self.gate.set()

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        raise NotImplementedError

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        self.asked.append(message.transaction_id)
        self.gate.wait(30)
        return COMMIT


def check(offset: int, group: str = "group", topic: str = "orders") -> RemotingCommand:
    named = {"PGROUP": group, "UNIQ_KEY": f"T{offset}"}
    body = encoded(topic, properties=named, queue_offset=offset, commit_log_offset=offset * 100)
    header = CheckTransactionStateRequestHeader(tran_state_table_offset=offset, commit_log_offset=offset * 100)
    return decoded(encode_request(RequestCode.CHECK_TRANSACTION_STATE, header, body, opaque=1))


@pytest.fixture
async def runners() -> AsyncIterator[Runners]:
    running = Runners("check", 2, World())
    yield running
    await running.stop(1)


def answers(listeners: Any, runners: Runners, max_waiting: int = 10) -> CheckAnswers:
    return CheckAnswers("group", TopicListeners("producer group", listeners), runners, max_waiting)


async def settled(runners: Runners) -> None:
    await until(lambda: not any(runners.of(each).unfinished for each in (Listener.check_local_transaction, settled)))


async def test_the_listener_is_asked_and_its_answer_goes_back_by_the_same_connection(runners: Runners) -> None:
    listener, connection = Listener(), Connection()
    answers(listener, runners).on_check(connection, check(7))  # type: ignore[arg-type]
    await settled(runners)
    (told,) = connection.told
    assert listener.asked == ["T7"]
    assert (told.commit_or_rollback, told.from_transaction_check) == (8, True)
    assert (told.tran_state_table_offset, told.commit_log_offset, told.msg_id) == (7, 700, "T7")


class Undecided(Listener):
    """A listener that decides only at the third check-back."""

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        self.asked.append(message.transaction_id)
        return UNKNOWN if self.asked.count(message.transaction_id) < 3 else ROLLBACK if message.transaction_id == "T8" else COMMIT


async def test_each_question_about_a_transaction_is_asked_of_the_listener_whatever_it_said_before(runners: Runners) -> None:
    listener, connection = Undecided(), Connection()
    check_back = answers(listener, runners)
    for _ in range(4):
        for offset in (7, 8):
            check_back.on_check(connection, check(offset))  # type: ignore[arg-type]
            await settled(runners)
    told = {name: [header.commit_or_rollback for header in connection.told if header.msg_id == name] for name in ("T7", "T8")}
    assert told == {"T7": [0, 0, 8, 8], "T8": [0, 0, 12, 12]}


async def test_a_transaction_that_is_being_looked_at_is_not_looked_at_twice(runners: Runners) -> None:
    listener, connection = Listener(), Connection()
    listener.gate.clear()
    check_back = answers(listener, runners)
    check_back.on_check(connection, check(7))  # type: ignore[arg-type]
    check_back.on_check(connection, check(7))  # type: ignore[arg-type]
    listener.gate.set()
    await settled(runners)
    check_back.on_check(connection, check(7))  # type: ignore[arg-type]
    await settled(runners)
    assert listener.asked == ["T7", "T7"]


async def test_a_broker_that_asks_again_after_a_restart_gets_the_answer(runners: Runners) -> None:
    listener, before, after = Listener(), Connection(), Connection()
    listener.gate.clear()
    check_back = answers(listener, runners)
    check_back.on_check(before, check(7))  # type: ignore[arg-type]
    check_back.on_check(after, check(7))  # type: ignore[arg-type]
    listener.gate.set()
    await settled(runners)
    assert listener.asked == ["T7"]
    assert ([told.msg_id for told in before.told], [told.msg_id for told in after.told]) == ([], ["T7"])


async def test_questions_beyond_the_bound_are_left_to_the_brokers_next(runners: Runners) -> None:
    listener, connection = Listener(), Connection()
    listener.gate.clear()
    check_back = answers(listener, runners, 3)
    for offset in range(1, 6):
        check_back.on_check(connection, check(offset))  # type: ignore[arg-type]
    listener.gate.set()
    await settled(runners)
    assert sorted(told.msg_id for told in connection.told) == ["T1", "T2", "T3"]


async def test_a_question_for_another_group_is_not_answered(runners: Runners) -> None:
    listener, connection = Listener(), Connection()
    answers(listener, runners).on_check(connection, check(7, group="other"))  # type: ignore[arg-type]
    await settled(runners)
    assert (listener.asked, connection.told) == ([], [])


class Refunds(Listener):
    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:  # type: ignore[override]
        self.asked.append(message.transaction_id)
        return LocalTransactionState.ROLLBACK_MESSAGE


async def test_each_topic_has_its_own_listener_be_it_a_function_or_an_async_one(runners: Runners) -> None:
    orders, refunds, connection = Listener(), Refunds(), Connection()
    check_back = answers({"orders": orders, "refunds": refunds}, runners)
    check_back.on_check(connection, check(7))  # type: ignore[arg-type]
    check_back.on_check(connection, check(8, topic="refunds"))  # type: ignore[arg-type]
    await settled(runners)
    assert (orders.asked, refunds.asked) == (["T7"], ["T8"])
    assert {told.msg_id: told.commit_or_rollback for told in connection.told} == {"T7": 8, "T8": 12}


async def test_a_topic_without_a_listener_is_undecided_and_named_once(runners: Runners, caplog: pytest.LogCaptureFixture) -> None:
    connection = Connection()
    check_back = answers({"orders": Listener()}, runners)
    for offset in (7, 8):
        check_back.on_check(connection, check(offset, topic="refunds"))  # type: ignore[arg-type]
    assert [(told.msg_id, told.commit_or_rollback) for told in connection.told] == [("T7", 0), ("T8", 0)]
    (line,) = caplog.messages
    assert "for topic refunds are answered UNKNOWN: producer group has transaction listeners only for: orders" in line


async def test_the_listener_for_all_other_topics_is_asked_about_them(runners: Runners) -> None:
    orders, others, connection = Listener(), Listener(), Connection()
    check_back = answers({"orders": orders, "*": others}, runners)
    check_back.on_check(connection, check(8, topic="refunds"))  # type: ignore[arg-type]
    await settled(runners)
    assert (orders.asked, others.asked) == ([], ["T8"])
