"""Tests of programs that use only `rocketmq_broker.client`, with text messages, both kinds of listeners, and `with`."""

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from rocketmq_broker.app import Broker
from rocketmq_broker.client import (
    ConsumeContext,
    ConsumeFromWhere,
    ConsumeStatus,
    EventLoopThread,
    LocalTransactionState,
    Message,
    MessageExt,
    NotRunning,
    Producer,
    PullConsumer,
    PushConsumer,
    SendStatus,
    TransactionProducer,
)
from tests.waiting import until

TOPIC = "orders"


@pytest.fixture
async def namesrv_addr(start_broker: Callable[..., Awaitable[Broker]]) -> str:
    broker = await start_broker(transaction_time_out=20, transaction_check_interval=20)
    return ";".join(broker.name_servers)


def consumer_of(namesrv_addr: str, group: str = "credits") -> PushConsumer:
    consumer = PushConsumer(group, namesrv_addr=namesrv_addr, consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    consumer.subscribe(TOPIC)
    return consumer


async def send(namesrv_addr: str, *texts: str) -> None:
    async with Producer("order-producers", namesrv_addr=namesrv_addr) as producer:
        for text in texts:
            assert (await producer.send(Message.of(TOPIC, text))).send_status is SendStatus.SEND_OK


@pytest.mark.parametrize("orderly", [False, True])
async def test_an_async_listener_runs_on_the_event_loop(namesrv_addr: str, orderly: bool) -> None:
    await send(namesrv_addr, "Grüße", "order 2")
    got: list[tuple[str, threading.Thread]] = []

    async def listener(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        await asyncio.sleep(0)
        got.extend((message.text, threading.current_thread()) for message in messages)
        return ConsumeStatus.CONSUME_SUCCESS

    consumer = consumer_of(namesrv_addr)
    consumer.register_message_listener(listener, orderly=orderly)
    async with consumer:
        await until(lambda: len(got) == 2)
    assert {text for text, _ in got} == {"Grüße", "order 2"}
    assert {thread for _, thread in got} == {threading.current_thread()}


async def test_messages_that_an_async_listener_holds_at_the_shutdown_come_again(namesrv_addr: str) -> None:
    await send(namesrv_addr, "order 1")
    held = asyncio.Event()

    async def holder(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        held.set()
        await context.hold_async(3600)
        return ConsumeStatus.CONSUME_SUCCESS

    consumer = consumer_of(namesrv_addr)
    consumer.register_message_listener(holder)
    async with consumer:
        await asyncio.wait_for(held.wait(), 60)
    got: list[MessageExt] = []
    successor = consumer_of(namesrv_addr)
    successor.register_message_listener(lambda messages, context: (got.extend(messages), ConsumeStatus.CONSUME_SUCCESS)[1])
    async with successor:
        await until(lambda: got)
    assert [(message.text, message.reconsume_times) for message in got] == [("order 1", 0)]


class AsyncOrders:
    """An async transaction listener. It decides one order at once, and all others at the second check-back."""

    def __init__(self) -> None:
        self.checks: dict[str, list[int]] = {}

    async def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        await asyncio.sleep(0)
        return arg if isinstance(arg, LocalTransactionState) else LocalTransactionState.UNKNOWN

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        await asyncio.sleep(0)
        checks = self.checks.setdefault(message.text, [])
        checks.append(message.transaction_check_times)
        return LocalTransactionState.COMMIT_MESSAGE if len(checks) == 2 else LocalTransactionState.UNKNOWN


async def test_an_async_transaction_listener_decides_and_is_told_how_often_it_was_asked(namesrv_addr: str) -> None:
    listener = AsyncOrders()
    async with TransactionProducer("order-producers", listener, namesrv_addr=namesrv_addr) as producer:
        sent = await producer.send_message_in_transaction(Message.of(TOPIC, "at once"), LocalTransactionState.COMMIT_MESSAGE)
        assert sent.local_transaction_state is LocalTransactionState.COMMIT_MESSAGE
        sent = await producer.send_message_in_transaction(Message.of(TOPIC, "later"))
        assert sent.local_transaction_state is LocalTransactionState.UNKNOWN
        async with PullConsumer("auditors", namesrv_addr=namesrv_addr) as auditor:
            auditor.assign(await auditor.queues(TOPIC))
            texts: set[str] = set()
            async with asyncio.timeout(60):
                while texts != {"at once", "later"}:
                    texts |= {message.text for message in await auditor.poll(100)}
    assert listener.checks["later"][:2] == [1, 2]


async def test_what_was_left_runs_no_longer(namesrv_addr: str) -> None:
    with pytest.raises(LookupError, match="within"):
        async with Producer("order-producers", namesrv_addr=namesrv_addr) as producer:
            raise LookupError("within")
    with pytest.raises(NotRunning, match="it was shut down"):
        await producer.send(Message.of(TOPIC, "too late"))


async def test_a_program_without_an_event_loop_says_with_as_well(namesrv_addr: str) -> None:
    def program() -> str:
        with EventLoopThread() as loop, loop.running(Producer("order-producers", namesrv_addr=namesrv_addr)) as producer:
            sent = loop.run(producer.send(Message.of(TOPIC, "from a thread")))
        with pytest.raises(NotRunning):
            loop.run(producer.send(Message.of(TOPIC, "too late")))
        return sent.queue.topic

    assert await asyncio.to_thread(program) == TOPIC
