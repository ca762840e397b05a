"""Our client when something is away: not started yet, killed, restarted."""

import asyncio
import contextlib
from collections.abc import Callable

import pytest

from demo.ports import free_ports
from rocketmq_broker.client import (
    ClientError,
    EventLoopThread,
    IllegalConfiguration,
    NameServerUnreachable,
    NoRoute,
    NotRunning,
    Producer,
    SendFailed,
    TransactionProducer,
)
from rocketmq_broker.message import Message
from tests.conftest import BrokerProcess
from tests.e2e.clients import PATIENT, Inbox, consumer, running
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.fixture
def nobody() -> str:
    """An address at which nothing listens."""
    (port,) = free_ports(1)
    return f"127.0.0.1:{port}"


async def test_without_a_name_server_a_producer_starts_and_says_what_to_do_when_it_sends(nobody: str) -> None:
    async with running(Producer("p", namesrv_addr=nobody, **PATIENT)) as producer:
        with pytest.raises(NameServerUnreachable, match=f"no name server answers at {nobody}.*set NAMESRV_ADDR"):
            await producer.send(Message.of("orders", b"x"))


async def test_a_web_server_where_the_name_server_should_be_is_named_as_such() -> None:
    async def web_server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    listening = await asyncio.start_server(web_server, "127.0.0.1", 0)
    address = f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    async with running(Producer("p", namesrv_addr=address, **PATIENT)) as producer:
        with pytest.raises(NameServerUnreachable, match=f"no name server answers at {address}.*the peer speaks HTTP"):
            await producer.send(Message.of("orders", b"x"))
    listening.close()


async def test_a_topic_that_nobody_creates_is_named(start_broker: Callable[..., BrokerProcess]) -> None:
    broker = start_broker({"autoCreateTopicEnable": "false"})
    async with running(Producer("p", namesrv_addr=broker.namesrv_addr, **PATIENT)) as producer:
        with pytest.raises(NoRoute, match="no broker has topic orders"):
            await producer.send(Message.of("orders", b"x"))
        await producer.create_topic("orders")
        await producer.send(Message.of("orders", b"x"))


async def test_a_consumer_started_before_everything_consumes_when_it_is_there(broker: BrokerProcess) -> None:
    broker.process.kill()
    inbox = Inbox()
    async with (
        running(consumer(broker.namesrv_addr, "group", "orders", inbox)),
        running(Producer("p", namesrv_addr=broker.namesrv_addr, **PATIENT)) as producer,
    ):
        await asyncio.to_thread(broker.process.start)
        await producer.send(Message.of("orders", b"first"))
        await until(lambda: inbox.bodies == ["first"])


async def test_all_that_was_sent_arrives_however_often_the_broker_is_killed(broker: BrokerProcess) -> None:
    inbox = Inbox()
    sent: list[str] = []
    async with (
        running(consumer(broker.namesrv_addr, "group", "orders", inbox, consume_message_batch_max_size=4)),
        running(Producer("p", namesrv_addr=broker.namesrv_addr, **PATIENT)) as producer,
    ):

        async def send_on() -> None:
            for number in range(100_000):
                try:
                    await producer.send(Message.of("orders", str(number).encode()))
                    sent.append(str(number))
                except SendFailed:
                    await asyncio.sleep(0.1)
                except ClientError as error:
                    raise AssertionError("an outage should show as SendFailed once the route is known") from error
                await asyncio.sleep(0.002)

        await producer.send(Message.of("orders", b"begin"))
        sending = asyncio.create_task(send_on())
        for _ in range(3):
            so_far = len(sent)
            await until(lambda so_far=so_far: len(sent) > so_far + 50)  # type: ignore[misc]
            broker.process.kill()
            await asyncio.to_thread(broker.process.start)
        so_far = len(sent)
        await until(lambda: len(sent) > so_far + 50 or sending.done())
        sending.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sending
        await until(lambda: set(sent) <= set(inbox.bodies))


async def test_any_of_several_name_servers_will_do(broker: BrokerProcess, nobody: str) -> None:
    inbox = Inbox()
    addresses = f"{nobody};{broker.namesrv_addr}"
    async with (
        running(Producer("p", namesrv_addr=addresses, **PATIENT)) as producer,
        running(consumer(addresses, "group", "orders", inbox)),
    ):
        await producer.send(Message.of("orders", b"x"))
        await until(lambda: inbox.bodies == ["x"])


async def test_a_broker_that_is_down_is_avoided_while_another_one_is_up(start_broker: Callable[..., BrokerProcess]) -> None:
    first = start_broker()
    second = start_broker({"namesrvAddr": first.namesrv_addr})
    async with running(Producer("p", namesrv_addr=first.namesrv_addr, **PATIENT)) as producer:
        await producer.create_topic("orders", 2)
        names = {(await producer.send(Message.of("orders", b"x"))).queue.broker_name for _ in range(8)}
        assert len(names) == 2
        second.process.kill()
        for _ in range(8):
            await producer.send(Message.of("orders", b"x"))


async def test_a_transaction_producer_without_a_listener_does_not_start(nobody: str) -> None:
    with pytest.raises(IllegalConfiguration, match="transaction listener"):
        await TransactionProducer("p", None, namesrv_addr=nobody).start()  # type: ignore[arg-type]


async def test_a_client_that_is_not_running_says_so(nobody: str) -> None:
    producer = Producer("p", namesrv_addr=nobody)
    with pytest.raises(NotRunning, match="start it first"):
        await producer.send(Message.of("orders", b"x"))
    await producer.start()
    await producer.shutdown()
    with pytest.raises(NotRunning, match="shut down"):
        await producer.send(Message.of("orders", b"x"))


async def test_no_task_outlives_a_client(broker: BrokerProcess) -> None:
    before = asyncio.all_tasks()
    async with (
        running(consumer(broker.namesrv_addr, "group", "orders", Inbox())),
        running(Producer("p", namesrv_addr=broker.namesrv_addr, **PATIENT)) as producer,
    ):
        await producer.send(Message.of("orders", b"x"))
    assert asyncio.all_tasks() == before


def test_threads_use_the_client_through_the_event_loop_thread(broker: BrokerProcess) -> None:
    producer = Producer("p", namesrv_addr=broker.namesrv_addr, **PATIENT)
    with EventLoopThread() as loop:
        loop.run(producer.start())
        result = loop.run(producer.send(Message.of("orders", b"x")), timeout_s=60)
        loop.run(producer.shutdown())
    assert result.queue.topic == "orders"
    with pytest.raises(NotRunning):
        loop.run(producer.send(Message.of("orders", b"x")))
