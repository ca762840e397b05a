"""Check-back: who is asked, what is answered, and what is dropped."""

import threading
from collections.abc import AsyncIterator

import pytest

from broker.client import LocalTransactionState
from broker.client.push.listener_threads import ListenerThreads
from broker.client.transaction.check_answers import CheckAnswers
from broker.message import Message, MessageExt
from broker.message.record import encode_record, host_bytes
from broker.protocol.codes import RequestCode
from broker.protocol.command import RemotingCommand, encode_request
from broker.protocol.frame import FrameDecoder
from broker.protocol.headers import CheckTransactionStateRequestHeader, EndTransactionRequestHeader
from tests.unit.client.waiting import until

COMMIT = LocalTransactionState.COMMIT_MESSAGE


class Connection:
    peer = "127.0.0.1:10911"

    def __init__(self) -> None:
        self.told: list[EndTransactionRequestHeader] = []

    def invoke_oneway(self, code: int, header: EndTransactionRequestHeader) -> None:
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


def check(offset: int, group: str = "group") -> RemotingCommand:
    body = encode_record(
        topic=b"orders",
        queue_id=0,
        queue_offset=offset,
        commit_log_offset=offset * 100,
        flag=0,
        sys_flag=0,
        born_timestamp=0,
        born_host=host_bytes("127.0.0.1", 1),
        store_timestamp=0,
        store_host=host_bytes("127.0.0.1", 10911),
        reconsume_times=0,
        prepared_transaction_offset=0,
        body=b"order",
        properties=f"PGROUP\x01{group}\x02UNIQ_KEY\x01T{offset}".encode(),
    )
    header = CheckTransactionStateRequestHeader(tran_state_table_offset=offset, commit_log_offset=offset * 100)
    (command,) = FrameDecoder().feed(encode_request(RequestCode.CHECK_TRANSACTION_STATE, header, body, opaque=1))
    return command


@pytest.fixture
async def threads() -> AsyncIterator[ListenerThreads]:
    running = ListenerThreads("check", 2)
    yield running
    await running.stop(1)


async def settled(threads: ListenerThreads) -> None:
    await until(lambda: not threads.unfinished)


async def test_the_listener_is_asked_and_its_answer_goes_back_by_the_same_connection(threads: ListenerThreads) -> None:
    listener, connection = Listener(), Connection()
    CheckAnswers("group", listener, threads, 10).on_check(connection, check(7))  # type: ignore[arg-type]
    await settled(threads)
    (told,) = connection.told
    assert listener.asked == ["T7"]
    assert (told.commit_or_rollback, told.from_transaction_check) == (8, True)
    assert (told.tran_state_table_offset, told.commit_log_offset, told.msg_id) == (7, 700, "T7")


async def test_a_transaction_that_is_being_looked_at_is_not_looked_at_twice(threads: ListenerThreads) -> None:
    listener, connection = Listener(), Connection()
    listener.gate.clear()
    check_back = CheckAnswers("group", listener, threads, 10)
    check_back.on_check(connection, check(7))  # type: ignore[arg-type]
    check_back.on_check(connection, check(7))  # type: ignore[arg-type]
    listener.gate.set()
    await settled(threads)
    check_back.on_check(connection, check(7))  # type: ignore[arg-type]
    await settled(threads)
    assert listener.asked == ["T7", "T7"]


async def test_a_broker_that_asks_anew_after_a_restart_gets_the_answer(threads: ListenerThreads) -> None:
    listener, before, after = Listener(), Connection(), Connection()
    listener.gate.clear()
    check_back = CheckAnswers("group", listener, threads, 10)
    check_back.on_check(before, check(7))  # type: ignore[arg-type]
    check_back.on_check(after, check(7))  # type: ignore[arg-type]
    listener.gate.set()
    await settled(threads)
    assert listener.asked == ["T7"]
    assert ([told.msg_id for told in before.told], [told.msg_id for told in after.told]) == ([], ["T7"])


async def test_questions_beyond_the_bound_are_left_to_the_brokers_next(threads: ListenerThreads) -> None:
    listener, connection = Listener(), Connection()
    listener.gate.clear()
    check_back = CheckAnswers("group", listener, threads, 3)
    for offset in range(1, 6):
        check_back.on_check(connection, check(offset))  # type: ignore[arg-type]
    listener.gate.set()
    await settled(threads)
    assert sorted(told.msg_id for told in connection.told) == ["T1", "T2", "T3"]


async def test_a_question_for_another_group_is_not_answered(threads: ListenerThreads) -> None:
    listener, connection = Listener(), Connection()
    CheckAnswers("group", listener, threads, 10).on_check(connection, check(7, group="other"))  # type: ignore[arg-type]
    await settled(threads)
    assert (listener.asked, connection.told) == ([], [])
