"""Clients of the broker under test that run during a block, a request for tests without a client, and a recording listener."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from types import MappingProxyType
from typing import Protocol, TypeVar

from rocketmq_broker.client import ConsumeContext, ConsumeFromWhere, ConsumeStatus, PullConsumer, PushConsumer
from rocketmq_broker.message import MessageExt
from rocketmq_broker.protocol.headers.send import SendMessageRequestHeaderV2

SEND = SendMessageRequestHeaderV2(
    producer_group="p",
    topic="orders",
    default_topic="TBW102",
    default_topic_queue_nums=4,
    queue_id=0,
    sys_flag=0,
    born_timestamp=1,
    flag=0,
)
"""The header of a message that is sent without a client."""

PATIENT: Mapping[str, int] = MappingProxyType({"send_timeout_ms": 30_000})
"""Settings of a producer in a test that is not about time-outs: a slow machine is no reason for a send to fail."""


class Startable(Protocol):
    async def start(self) -> None: ...

    async def shutdown(self) -> None: ...


Client = TypeVar("Client", bound=Startable)


@contextlib.asynccontextmanager
async def running(*clients: Client) -> AsyncIterator[Client]:
    """Starts the clients, yields the first one, and shuts all of them down after the block."""
    try:
        for client in clients:
            await client.start()
        yield clients[0]
    finally:
        await asyncio.gather(*(client.shutdown() for client in clients))


class Inbox:
    """A listener that records each message. `answer` may return a different status than success."""

    def __init__(self, answer: Callable[[MessageExt, ConsumeContext], ConsumeStatus] | None = None) -> None:
        self.messages: list[MessageExt] = []
        self._answer = answer
        self._lock = threading.Lock()

    def __call__(self, messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        status = ConsumeStatus.CONSUME_SUCCESS
        for message in messages:
            with self._lock:
                self.messages.append(message)
            if self._answer is not None and self._answer(message, context) is not ConsumeStatus.CONSUME_SUCCESS:
                status = ConsumeStatus.RECONSUME_LATER
        return status

    @property
    def bodies(self) -> list[str]:
        with self._lock:
            return [message.body.decode() for message in self.messages]


class Database:
    """A database that a consumer needs. While it is unavailable, messages become dead letters."""

    def __init__(self) -> None:
        self.is_there = False

    def consume(self, message: MessageExt, context: ConsumeContext) -> ConsumeStatus:
        if self.is_there:
            return ConsumeStatus.CONSUME_SUCCESS
        context.delay_level_when_next_consume = 1
        return ConsumeStatus.RECONSUME_LATER


def consumer(
    namesrv_addr: str, group: str, topic: str, listener: Inbox, *, orderly: bool = False, **settings: object
) -> PushConsumer:
    """Returns a push consumer of the topic that begins with the first message. It has not been started."""
    from_where = {"consume_from_where": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET}
    made = PushConsumer(group, namesrv_addr=namesrv_addr, **{**from_where, **settings})
    made.subscribe(topic)
    made.register_message_listener(listener, orderly=orderly)
    return made


async def until_there_are(pull: PullConsumer, topic: str, count: int, timeout_s: float = 60) -> None:
    """Waits until readers see `count` messages, because Apache's broker confirms a send earlier. Raises TimeoutError."""
    async with asyncio.timeout(timeout_s):
        while sum([await pull.max_offset(queue) for queue in await pull.queues(topic)]) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
