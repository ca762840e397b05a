"""Tests that usual mistakes with the Python client cause the error texts of docs/troubleshooting.md."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from rocketmq_broker.client import (
    ClientTls,
    ConsumeContext,
    ConsumeStatus,
    LocalTransactionState,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
    TransactionProducer,
    name_server_addresses,
)
from rocketmq_broker.testing import RocketMQ

PAGE: Final = (Path(__file__).parents[3] / "docs" / "troubleshooting.md").read_text()
SECTION: Final = PAGE.partition("## The usual mistakes\n")[2].partition("\n## ")[0]
TABLE: Final = dict(re.findall(r"^\| (.+?) \| `(.+?)` \| .+ \|$", SECTION, re.MULTILINE))
"""What was done, and the sentence that it gets."""

Mistake: TypeAlias = Callable[[RocketMQ], Awaitable[object]]
ORDER: Final = Message.of("orders", "order 1")
COMMIT, UNKNOWN = LocalTransactionState.COMMIT_MESSAGE, LocalTransactionState.UNKNOWN
QUICK: Final[Mapping[str, Any]] = {"retry_times_when_send_failed": 0, "send_timeout_ms": 1000}


class Listener:
    """A transaction listener that returns the given results."""

    def __init__(self, executed: Any = COMMIT, checked: Any = COMMIT) -> None:
        self.executed, self.checked = executed, checked

    async def execute_local_transaction(self, message: Message, arg: object) -> Any:
        return self._answer(self.executed)

    async def check_local_transaction(self, message: MessageExt) -> Any:
        return self._answer(self.checked)

    @staticmethod
    def _answer(told: object) -> object:
        if isinstance(told, Exception):
            raise told
        return told


async def consume(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
    return ConsumeStatus.CONSUME_SUCCESS


def constructing(make: Callable[[], object]) -> Mistake:
    async def mistake(rocketmq: RocketMQ) -> object:
        return make()

    return mistake


def starting(make: Callable[[], Producer | PushConsumer]) -> Mistake:
    async def mistake(rocketmq: RocketMQ) -> object:
        return await make().start()

    return mistake


def sending_to(namesrv_addr: Callable[[RocketMQ], str], message: Message = ORDER, **settings: Any) -> Mistake:
    async def mistake(rocketmq: RocketMQ) -> object:
        async with Producer("shop", namesrv_addr=namesrv_addr(rocketmq), **QUICK, **settings) as producer:
            return await producer.send(message)

    return mistake


def transacting(listener: object, seconds: float = 0) -> Mistake:
    async def mistake(rocketmq: RocketMQ) -> None:
        producer = await rocketmq.transaction_producer("shop", listener)  # type: ignore[arg-type]
        await producer.send_message_in_transaction(ORDER)
        await rocketmq.advance(seconds=seconds)

    return mistake


def consuming(listener: Any) -> Mistake:
    async def mistake(rocketmq: RocketMQ) -> None:
        producer = await rocketmq.producer("shop")
        await producer.create_topic("orders", 1)
        await rocketmq.consumer("credits", "orders", listener)
        await producer.send(ORDER)
        await rocketmq.advance(seconds=1)

    return mistake


async def at_a_web_server(rocketmq: RocketMQ) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        await sending_to(lambda rocketmq: address)(rocketmq)


async def closed(rocketmq: RocketMQ) -> None:
    async with Producer("shop", namesrv_addr=rocketmq.namesrv_addr) as producer:
        pass
    await producer.send(ORDER)


async def not_started(rocketmq: RocketMQ) -> None:
    await Producer("shop", namesrv_addr=rocketmq.namesrv_addr).send(ORDER)


async def started_twice(rocketmq: RocketMQ) -> None:
    producer = await rocketmq.producer("shop")
    await producer.start()


async def on_two_loops(rocketmq: RocketMQ) -> None:
    producer = await rocketmq.producer("shop")
    await asyncio.to_thread(lambda: asyncio.run(producer.send(ORDER)))


async def two_programs(rocketmq: RocketMQ) -> None:
    """Stops the sender of a transactional message while another member of its group has a listener for another topic only."""
    sender = await rocketmq.transaction_producer("shop", {"orders": Listener(executed=UNKNOWN)})
    await rocketmq.transaction_producer("shop", {"refunds": Listener()})
    await sender.send_message_in_transaction(ORDER)
    await sender.shutdown()
    await rocketmq.advance(minutes=2)


async def delayed(rocketmq: RocketMQ) -> None:
    producer = await rocketmq.transaction_producer("shop", Listener())
    await producer.send_message_in_transaction(Message.of("orders", "order 1", delay_time_level=3))


async def another_topic(rocketmq: RocketMQ) -> None:
    producer = await rocketmq.transaction_producer("shop", {"refunds": Listener()})
    await producer.send_message_in_transaction(ORDER)


async def subscribed_twice(rocketmq: RocketMQ) -> None:
    consumer = PushConsumer("credits")
    consumer.subscribe("orders", "paid")
    consumer.subscribe("orders", "refunded")


async def without_subscription(rocketmq: RocketMQ) -> None:
    consumer = PushConsumer("credits")
    consumer.register_message_listener(consume)
    await consumer.start()


async def without_listener(rocketmq: RocketMQ) -> None:
    consumer = PushConsumer("credits")
    consumer.subscribe("orders")
    await consumer.start()


async def unknown_group(rocketmq: RocketMQ) -> None:
    await consuming(consume)(rocketmq)
    await rocketmq.advance(seconds=30)


async def different_subscriptions(rocketmq: RocketMQ) -> None:
    producer = await rocketmq.producer("shop")
    for topic in ("orders", "refunds"):
        await producer.create_topic(topic)
        await rocketmq.consumer("credits", topic, consume, instance_name=topic)
    await rocketmq.advance(minutes=1)


class OnlyHalf:
    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        return COMMIT


def name_server(rocketmq: RocketMQ) -> str:
    return rocketmq.namesrv_addr


anything: Any = None
MISTAKES: Final[Mapping[str, Mistake]] = {
    "a body that is neither `bytes` nor `str`": constructing(lambda: Message.of("orders", {"order": 1})),  # type: ignore[arg-type]
    "topic and body swapped": constructing(lambda: Message.of(b"order 1", "orders")),  # type: ignore[arg-type]
    'one key without a list: `keys="order-1"`': constructing(lambda: Message.of("orders", "order 1", keys="order-1")),
    'a list of tags: `tags=["paid"]`': constructing(lambda: Message.of("orders", "order 1", tags=["paid"])),  # type: ignore[arg-type]
    "a number as a property": constructing(lambda: Message.of("orders", "order 1", user_properties={"count": 1})),  # type: ignore[dict-item]
    "a body of 5 MiB": sending_to(name_server, Message.of("orders", bytes(5 << 20)), compress_message_body_over=1 << 30),
    "a topic with a space in its name": sending_to(name_server, Message.of("my orders", "order 1")),
    "a group with a space in its name": constructing(lambda: Producer("my shop")),
    "a setting by another name": constructing(lambda: Producer("shop", namesrv="127.0.0.1:9876")),  # type: ignore[arg-type]
    'text for a constant: `consume_from_where="FIRST"`': constructing(
        lambda: PushConsumer("credits", consume_from_where="FIRST")
    ),  # type: ignore[arg-type]
    "nothing runs at the address": sending_to(lambda rocketmq: "127.0.0.1:9"),
    "the broker's port, 10911, for the name server's": sending_to(lambda rocketmq: rocketmq.broker_addr),
    "the port of a web server": at_a_web_server,
    "an address without a port": constructing(lambda: name_server_addresses("127.0.0.1")),
    "a URL as the address": constructing(lambda: name_server_addresses("tcp://127.0.0.1:9876/")),
    "TLS to a broker that speaks plainly": sending_to(name_server, tls=ClientTls()),
    "no TLS to a broker that wants it": sending_to(name_server),
    "a topic that does not exist, where none are created": sending_to(name_server),
    "a consumer group that does not exist, where none are created": unknown_group,
    "to `send` before `start`": not_started,
    "to `send` after `shutdown`": closed,
    "to `start` twice": started_twice,
    "a client used on two event loops": on_two_loops,
    "the class of a transaction listener, not an instance": starting(lambda: TransactionProducer("shop", Listener)),  # type: ignore[arg-type]
    "a transaction listener without `check_local_transaction`": starting(lambda: TransactionProducer("shop", OnlyHalf())),  # type: ignore[arg-type]
    "a transaction listener that returns nothing": transacting(Listener(executed=None)),
    "a transaction listener that raises": transacting(Listener(executed=LookupError("no database"))),
    "a transaction to a topic without a listener": another_topic,
    "two programs in one producer group, with listeners for different topics": two_programs,
    "a transactional message with a delay": delayed,
    "a message listener with one parameter": constructing(
        lambda: PushConsumer("credits").register_message_listener(lambda messages: anything)  # type: ignore[arg-type,misc]
    ),
    "a message listener that returns nothing": consuming(lambda messages, context: None),
    "a message listener that raises": consuming(lambda messages, context: 1 / 0),
    "two programs in one consumer group, with different subscriptions": different_subscriptions,
    "a consumer without a listener": without_listener,
    "a consumer without a subscription": without_subscription,
    "to `subscribe` twice, for two tags": subscribed_twice,
    "tags joined by a comma": constructing(lambda: PushConsumer("credits").subscribe("orders", "paid,refunded")),
}
SETTINGS: Final[Mapping[str, Mapping[str, object]]] = {
    "a topic that does not exist, where none are created": {"autoCreateTopicEnable": False},
    "a consumer group that does not exist, where none are created": {"autoCreateSubscriptionGroup": False},
    "no TLS to a broker that wants it": {"tls.server.mode": "enforcing", "tls.test.mode.enable": True},
}


def test_the_page_has_each_mistake() -> None:
    assert list(TABLE) == list(MISTAKES)
    assert len(MISTAKES) >= 18


@pytest.mark.parametrize("name", MISTAKES)
async def test_a_mistake_gets_its_sentence(name: str, caplog: pytest.LogCaptureFixture) -> None:
    async with RocketMQ(SETTINGS.get(name)) as rocketmq:
        with caplog.at_level(logging.WARNING, "rocketmq_broker.client"):
            try:
                await MISTAKES[name](rocketmq)
            except Exception as error:
                said = [str(error)]
            else:
                said = [record.getMessage() for record in caplog.records]
    sentence = TABLE.get(name, "?").replace("\\|", "|")  # as tables write it
    pattern = ".*".join(map(re.escape, sentence.split("…")))
    assert any(re.fullmatch(pattern, each, re.DOTALL) for each in said), said
