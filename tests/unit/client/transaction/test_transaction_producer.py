"""Tests a transaction in the producer: the listener's call, the request to the broker, and the caller's result."""

import asyncio
import logging
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, cast

import pytest

from rocketmq_broker.client import (
    BrokerUnreachable,
    EventLoopThread,
    IllegalConfiguration,
    LocalTransactionState,
    Message,
    MessageExt,
    MessageQueue,
    MessageRefused,
    NotRunning,
    SendFailed,
    SendResult,
    SendStatus,
    TransactionProducer,
    TransactionSendResult,
    local_transaction,
)
from rocketmq_broker.client.instance.instance import ClientInstance
from rocketmq_broker.client.producer.message_sender import MessageSender, SendRequests
from rocketmq_broker.client.producer.producer import RunningProducer
from rocketmq_broker.message import sysflag
from rocketmq_broker.protocol.headers.transaction import EndTransactionRequestHeader
from tests.waiting import until

COMMIT, ROLLBACK, UNKNOWN = LocalTransactionState
MESSAGE = Message.of("orders", b"order 1")
STORED_AT = 0x64


class Broker:
    """A fake of the sender, the requests and the client instance that a transaction producer uses."""

    def __init__(self) -> None:
        self.status = SendStatus.SEND_OK
        self.send_error: Exception | None = None
        self.end_error: Exception | None = None
        self.halves: list[Message] = []
        self.ended: list[EndTransactionRequestHeader] = []
        self.is_stopped = False

    async def send(self, message: Message, *, new_id_each_attempt: bool) -> SendResult:
        assert new_id_each_attempt, "two half messages must never count as one"
        self.halves.append(message)
        if self.send_error is not None:
            raise self.send_error
        return SendResult(
            send_status=self.status,
            message_id="ID",
            offset_message_id=f"7F00000100002A9F{STORED_AT:016X}",
            queue=MessageQueue("orders", "broker-a", 0),
            queue_offset=5,
        )

    async def end_transaction(self, broker_name: str, header: EndTransactionRequestHeader, failure: str | None = None) -> None:
        if self.end_error is not None:
            raise self.end_error
        self.ended.append(header)

    async def stop(self) -> None:
        self.is_stopped = True


class Listener:
    """A listener that returns or raises what the test chose."""

    def __init__(self, answer: object = COMMIT) -> None:
        self.answer = answer
        self.executed: list[tuple[Message, object]] = []

    def execute_local_transaction(self, message: Message, arg: object) -> Any:
        self.executed.append((message, arg))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def check_local_transaction(self, message: object) -> Any:
        raise NotImplementedError


class SlowListener(Listener):
    """A listener that returns COMMIT when its gate opens."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()

    async def execute_local_transaction(self, message: Message, arg: object) -> Any:
        self.executed.append((message, arg))
        await self.gate.wait()
        return COMMIT


def running(listener: Any, broker: Broker, **settings: Any) -> TransactionProducer:
    """Returns a running producer without a network."""
    producer = TransactionProducer("p", listener, **settings)
    parts = RunningProducer(cast(ClientInstance, broker), cast(SendRequests, broker), cast(MessageSender, broker))
    producer._lifecycle.started(parts)
    return producer


@pytest.mark.parametrize(
    ("answer", "state", "bits"),
    [
        (COMMIT, COMMIT, sysflag.TRANSACTION_COMMIT_TYPE),
        (ROLLBACK, ROLLBACK, sysflag.TRANSACTION_ROLLBACK_TYPE),
        (UNKNOWN, UNKNOWN, sysflag.TRANSACTION_NOT_TYPE),
        (None, UNKNOWN, sysflag.TRANSACTION_NOT_TYPE),
        ("COMMIT", UNKNOWN, sysflag.TRANSACTION_NOT_TYPE),
        (LookupError("no database"), UNKNOWN, sysflag.TRANSACTION_NOT_TYPE),
    ],
)
async def test_the_broker_is_told_what_the_listener_said(answer: object, state: LocalTransactionState, bits: int) -> None:
    broker = Broker()
    producer = running(Listener(answer), broker)
    sent = await producer.send_message_in_transaction(MESSAGE)
    assert sent.local_transaction_state is state
    (told,) = broker.ended
    assert (told.commit_or_rollback, told.from_transaction_check) == (bits, False)
    assert (told.commit_log_offset, told.tran_state_table_offset, told.msg_id) == (STORED_AT, 5, "ID")
    await producer.shutdown()


async def test_the_half_message_says_that_it_is_one_and_whose() -> None:
    broker, listener = Broker(), Listener()
    producer = running(listener, broker)
    sent = await producer.send_message_in_transaction(MESSAGE, "arg")
    (half,) = broker.halves
    assert (half.properties["TRAN_MSG"], half.properties["PGROUP"]) == ("true", "p")
    ((seen, arg),) = listener.executed
    assert (seen.transaction_id, arg) == ("ID", "arg") == (sent.transaction_id, "arg")
    await producer.shutdown()


@pytest.mark.parametrize("status", [status for status in SendStatus if status is not SendStatus.SEND_OK])
async def test_nothing_depends_on_a_half_message_that_may_be_lost(status: SendStatus) -> None:
    broker, listener = Broker(), Listener()
    broker.status = status
    producer = running(listener, broker)
    sent = await producer.send_message_in_transaction(MESSAGE)
    assert (sent.local_transaction_state, sent.send_status, listener.executed) == (ROLLBACK, status, [])
    assert broker.ended[0].commit_or_rollback == sysflag.TRANSACTION_ROLLBACK_TYPE
    await producer.shutdown()


async def test_without_a_half_message_the_local_transaction_does_not_run() -> None:
    broker, listener = Broker(), Listener()
    broker.send_error = SendFailed("nobody there")
    producer = running(listener, broker)
    with pytest.raises(SendFailed, match="nobody there"):
        await producer.send_message_in_transaction(MESSAGE)
    assert (listener.executed, broker.ended) == ([], [])
    await producer.shutdown()


async def test_a_decision_that_does_not_arrive_is_left_to_the_check_back(caplog: pytest.LogCaptureFixture) -> None:
    broker = Broker()
    broker.end_error = BrokerUnreachable("down")
    producer = running(Listener(), broker)
    sent = await producer.send_message_in_transaction(MESSAGE)
    assert sent.local_transaction_state is COMMIT
    assert "COMMIT_MESSAGE of transaction ID was not sent: down; the broker will check back" in caplog.text
    await producer.shutdown()


async def test_a_cancelled_caller_leaves_the_transaction_to_end_by_itself() -> None:
    broker, listener = Broker(), SlowListener()
    producer = running(listener, broker)
    waiting = asyncio.ensure_future(producer.send_message_in_transaction(MESSAGE))
    await until(lambda: len(listener.executed) == 1)
    waiting.cancel()
    listener.gate.set()
    await until(lambda: len(broker.ended) == 1)
    assert broker.ended[0].commit_or_rollback == sysflag.TRANSACTION_COMMIT_TYPE
    await producer.shutdown()


async def test_a_local_transaction_that_runs_at_the_shutdown_is_told_to_the_broker() -> None:
    broker, listener = Broker(), SlowListener()
    producer = running(listener, broker)
    sending = asyncio.ensure_future(producer.send_message_in_transaction(MESSAGE))
    await until(lambda: len(listener.executed) == 1)
    shutting_down = asyncio.ensure_future(producer.shutdown())
    await asyncio.sleep(0)
    listener.gate.set()
    await shutting_down
    assert (await sending).local_transaction_state is COMMIT
    assert len(broker.ended) == 1
    assert broker.is_stopped


USER: ContextVar[str] = ContextVar("user", default="nobody")


class Observer(Listener):
    """A listener that records what `see` returns while the local transaction runs."""

    def __init__(self, see: Callable[[], object]) -> None:
        super().__init__()
        self.see = see
        self.seen: list[object] = []

    def execute_local_transaction(self, message: Message, arg: object) -> Any:
        self.seen.append(self.see())
        return COMMIT


class AsyncObserver(Observer):
    """An Observer whose local transaction is a coroutine."""

    async def execute_local_transaction(self, message: Message, arg: object) -> Any:
        await asyncio.sleep(0)
        return super().execute_local_transaction(message, arg)


async def running_here(listener: Any, broker: Broker) -> TransactionProducer:
    """Returns a running producer on the current event loop."""
    return running(listener, broker)


def sent_by_a_thread(observer: Observer, *, timeout_s: float | None = None, user: str = "ann") -> TransactionSendResult:
    """Sends from this thread, as a Flask view does, with or without a timeout."""
    with EventLoopThread() as loop:
        producer = loop.run(running_here(observer, Broker()))
        before = USER.set(user)
        try:
            return loop.run(producer.send_message_in_transaction(MESSAGE), timeout_s)
        finally:
            USER.reset(before)
            loop.run(producer.shutdown())


@pytest.mark.parametrize("kind", [Observer, AsyncObserver])
@pytest.mark.parametrize("timeout_s", [None, 30])
def test_the_local_transaction_has_the_context_of_the_thread_that_sends(kind: type[Observer], timeout_s: float | None) -> None:
    observer = kind(USER.get)
    assert sent_by_a_thread(observer, timeout_s=timeout_s).local_transaction_state is COMMIT
    assert observer.seen == ["ann"]


@pytest.mark.parametrize("kind", [Observer, AsyncObserver])
async def test_local_transactions_side_by_side_have_each_the_context_of_its_own_caller(kind: type[Observer]) -> None:
    observer = kind(USER.get)
    producer = running(observer, Broker(), transaction_threads=1)

    async def send(user: str) -> None:
        USER.set(user)
        await producer.send_message_in_transaction(MESSAGE)

    await asyncio.gather(*(send(user) for user in ("ann", "bob", "cid")))
    assert sorted(map(str, observer.seen)) == ["ann", "bob", "cid"]
    await producer.shutdown()


@pytest.mark.parametrize("timeout_s", [None, 30])
def test_the_local_transaction_sees_flask_s_request(timeout_s: float | None) -> None:
    flask = pytest.importorskip("flask", reason="these tests also run where only the broker's libraries are")
    observer = Observer(lambda: (flask.g.user, flask.request.path))
    with flask.Flask("shop").test_request_context("/orders"):
        flask.g.user = "ann"
        assert sent_by_a_thread(observer, timeout_s=timeout_s).local_transaction_state is COMMIT
    assert observer.seen == [("ann", "/orders")]


def test_the_local_transaction_has_the_session_of_the_thread_that_sends() -> None:
    orm = pytest.importorskip("sqlalchemy.orm")
    sessions = orm.scoped_session(orm.sessionmaker())  # its registry goes by threads
    observer = Observer(lambda: (sessions(), threading.current_thread()))
    sent_by_a_thread(observer)
    assert observer.seen == [(sessions(), threading.current_thread())]


def test_with_a_time_limit_the_local_transaction_runs_in_a_thread_of_the_producer() -> None:
    observer = Observer(threading.current_thread)
    sent_by_a_thread(observer, timeout_s=30)
    assert observer.seen != [threading.current_thread()]


def test_an_error_of_a_local_transaction_in_the_sending_thread_leaves_it_to_the_check_back() -> None:
    def fail() -> object:
        raise NotRunning("the client of the listener is not running")

    assert sent_by_a_thread(Observer(fail)).local_transaction_state is UNKNOWN


def test_ctrl_c_in_a_local_transaction_ends_the_thread_s_wait_and_leaves_the_outcome_to_the_check_back() -> None:
    def interrupt() -> object:
        raise KeyboardInterrupt

    broker = Broker()
    with EventLoopThread() as loop:
        producer = loop.run(running_here(Observer(interrupt), broker))
        with pytest.raises(KeyboardInterrupt):
            loop.run(producer.send_message_in_transaction(MESSAGE))
        loop.run(producer.shutdown())
    assert [told.commit_or_rollback for told in broker.ended] == [sysflag.TRANSACTION_NOT_TYPE]


def test_a_task_that_outlives_its_caller_runs_its_local_transactions_in_a_thread_of_the_producer() -> None:
    observer = Observer(threading.current_thread)
    started = asyncio.Event()

    async def leave_a_task() -> asyncio.Task[Any]:
        await asyncio.sleep(0)
        return asyncio.create_task(later())

    async def later() -> LocalTransactionState:
        await started.wait()
        return (await producer.send_message_in_transaction(MESSAGE)).local_transaction_state

    async def open_and_wait() -> LocalTransactionState:
        started.set()
        return await task

    with EventLoopThread() as loop:
        producer = loop.run(running_here(observer, Broker()))
        task = loop.run(leave_a_task())
        assert loop.run(open_and_wait()) is COMMIT
        loop.run(producer.shutdown())
    assert observer.seen != [threading.current_thread()]


async def test_a_delayed_message_is_no_half_message() -> None:
    producer = running(Listener(), Broker())
    with pytest.raises(MessageRefused, match="a transactional message cannot be delayed"):
        await producer.send_message_in_transaction(Message.of("orders", b"x", delay_time_level=3))
    await producer.shutdown()


async def test_what_is_no_message_is_told_so() -> None:
    producer = running(Listener(), Broker())
    with pytest.raises(TypeError, match="message must be a Message"):
        await producer.send_message_in_transaction(cast(Message, b"order"))
    await producer.shutdown()
    with pytest.raises(NotRunning):
        await producer.send_message_in_transaction(MESSAGE)


async def test_a_producer_without_a_usable_listener_does_not_start(caplog: pytest.LogCaptureFixture) -> None:
    for listener in (None, object()):
        with caplog.at_level(logging.INFO), pytest.raises(IllegalConfiguration, match="the transaction listener, "):
            await TransactionProducer("p", cast(Any, listener)).start()
    assert "started" not in caplog.text


async def test_each_topic_has_its_own_listener() -> None:
    broker, orders, refunds = Broker(), Listener(), Listener()
    producer = running({"orders": orders, "refunds": refunds}, broker)
    await producer.send_message_in_transaction(MESSAGE, "of orders")
    await producer.send_message_in_transaction(Message.of("refunds", b"refund 1"), "of refunds")
    assert ([arg for _, arg in orders.executed], [arg for _, arg in refunds.executed]) == (["of orders"], ["of refunds"])
    await producer.shutdown()


async def test_to_a_topic_without_a_listener_nothing_is_sent() -> None:
    broker = Broker()
    producer = running({"orders": Listener(), "refunds": Listener()}, broker)
    sentence = "producer p has no transaction listener for topic gifts, only for: orders, refunds"
    with pytest.raises(IllegalConfiguration, match=sentence):
        await producer.send_message_in_transaction(Message.of("gifts", b"gift 1"))
    assert broker.halves == []
    await producer.shutdown()


@pytest.mark.parametrize(
    ("listeners", "sentence"),
    [
        ({}, "producer p has no transaction listener: pass one for each topic, or one for '\\*'"),
        ({"orders": Listener(), "refunds": None}, "producer p, topic refunds: the transaction listener, None, has no method"),
        ({"my orders": Listener()}, "topic 'my orders'.*illegal characters"),
        ({7: Listener()}, "the topic must be a str, not an int"),
    ],
)
async def test_a_producer_with_an_unusable_listener_for_a_topic_does_not_start(listeners: Any, sentence: str) -> None:
    with pytest.raises(IllegalConfiguration, match=sentence):
        await TransactionProducer("p", listeners).start()


@pytest.mark.parametrize("is_async", [False, True])
async def test_two_functions_are_a_listener(is_async: bool) -> None:
    @local_transaction
    def pay(message: Message, arg: object) -> LocalTransactionState:
        """Pays."""
        return COMMIT if arg == "enough" else ROLLBACK

    async def refund(message: Message, arg: object) -> LocalTransactionState:
        return pay.execute_local_transaction(message, arg)  # type: ignore[return-value]

    listener = local_transaction(refund) if is_async else pay

    @listener.answers_check_backs
    async def look_up(message: MessageExt) -> LocalTransactionState:
        return UNKNOWN

    producer = running(listener, Broker())
    states = [(await producer.send_message_in_transaction(MESSAGE, arg)).local_transaction_state for arg in ("enough", "less")]
    assert states == [COMMIT, ROLLBACK]
    assert (pay.__name__, pay.__doc__, pay(MESSAGE, "enough")) == ("pay", "Pays.", COMMIT)
    assert listener.check_local_transaction is look_up
    await producer.shutdown()


async def test_a_function_whose_check_backs_nobody_answers_is_refused_by_name() -> None:
    @local_transaction
    def pay(message: Message, arg: object) -> LocalTransactionState:
        return COMMIT

    with pytest.raises(
        IllegalConfiguration, match=r"the transaction listener pay does not answer check-backs: .* @pay\.answers_check_backs"
    ):
        await TransactionProducer("p", pay).start()
