"""Test support for FastStream applications.

The RocketMQ broker runs in the test's process, and the test controls time and faults.
"""

from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, Final
from unittest import mock

import anyio.to_thread
from faststream._internal.testing.broker import EnterType, TestBroker, change_producer

from faststream_rocketmq.broker import RocketMQBroker
from faststream_rocketmq.messages import RocketMQCommand
from faststream_rocketmq.producer import RocketMQProducer
from faststream_rocketmq.publisher import RocketMQPublisher
from faststream_rocketmq.subscriber import RocketMQSubscriber
from rocketmq_broker.client import SendResult
from rocketmq_broker.testing import RocketMQ, VirtualTime

A_MOMENT_S: Final = 0.1
"""The duration in seconds of virtual time in which published messages are handled. It is much shorter than any delay level."""


class TestRocketMQBroker(TestBroker[RocketMQBroker, EnterType], broker=RocketMQBroker):
    """Starts the application with its own RocketMQ broker. `publish` returns after the message has been handled.

    async with TestRocketMQBroker(broker) as tested:
        await tested.publish(order, "stream-orders")
        await credit.assert_called_once_with(order)

    Messages pass through the real client and broker. A message is therefore redelivered if its handler raises an exception, and a
    check-back follows a lost COMMIT. Use `rocketmq` to advance the time and inject faults.
    """

    def __init__(
        self,
        *brokers: RocketMQBroker,
        rocketmq: RocketMQ | None = None,
        with_real: bool = False,
        connect_only: bool | None = None,
    ) -> None:
        """Prepares the application's brokers for the test. `rocketmq` is a running instance, such as the fixture `rocketmq`.

        By default a new instance is started. `with_real` keeps the broker's configured addresses. In this case handlers run some
        time after `publish` has returned.
        """
        super().__init__(*brokers, with_real=True, connect_only=connect_only)
        self._is_elsewhere = with_real
        self._is_given = rocketmq is not None
        self.rocketmq = rocketmq or RocketMQ()

    @asynccontextmanager
    async def _create_ctx(self) -> AsyncGenerator[list[RocketMQBroker], None]:
        async with AsyncExitStack() as stack:
            if not self._is_elsewhere:
                if not self._is_given:
                    await stack.enter_async_context(self.rocketmq)
                stack.enter_context(self.rocketmq.inside())
                stack.enter_context(_threads_work_for(self.rocketmq.time))
                for broker in self.brokers:
                    self._move(broker, stack)
            yield await stack.enter_async_context(super()._create_ctx())

    def _move(self, broker: RocketMQBroker, stack: AsyncExitStack) -> None:
        """Connects the broker's clients to the RocketMQ of the test until the stack is closed."""
        config = broker.config.broker_config
        stack.callback(setattr, config, "client_options", config.client_options)
        config.client_options = {"namesrv_addr": self.rocketmq.namesrv_addr}
        stack.enter_context(change_producer(config, _SettlingProducer(self.rocketmq, broker)))

    @asynccontextmanager
    async def _do_start(self, broker: RocketMQBroker) -> AsyncGenerator[RocketMQBroker, None]:
        if not self._is_elsewhere:
            endpoints = (*broker.subscribers, *broker.publishers)
            client = await broker.connect()
            for topic in sorted({one.topic for one in endpoints if isinstance(one, RocketMQSubscriber | RocketMQPublisher)}):
                await client.create_topic(topic)
        async with super()._do_start(broker) as started:
            yield started

    def create_publisher_fake_subscriber(
        self, broker: RocketMQBroker, publisher: RocketMQPublisher
    ) -> tuple[RocketMQSubscriber, bool]:
        """Returns a subscriber that receives the publisher's messages, and True if the subscriber belongs to the application."""
        for one in (subscriber for broker in self.brokers for subscriber in broker.subscribers):
            if isinstance(one, RocketMQSubscriber) and one.topic == publisher.topic and one.wants(publisher.tags):
                return one, True
        return broker.subscriber(publisher.topic, group=f"test-of-{publisher.topic}"[:255], persistent=False), False


@contextmanager
def _threads_work_for(time: VirtualTime) -> Iterator[None]:
    """Stops virtual time while a worker thread of anyio is running.

    FastStream runs handlers that are not async in such threads.
    """
    run_sync = anyio.to_thread.run_sync

    async def run_known(*arguments: Any, **options: Any) -> Any:
        time.work_begins()
        try:
            return await run_sync(*arguments, **options)
        finally:
            time.work_ends()

    with mock.patch.object(anyio.to_thread, "run_sync", run_known):
        yield


class _SettlingProducer(RocketMQProducer):
    """A producer whose `publish` waits until the message has been handled, but not for work that is scheduled for later."""

    def __init__(self, rocketmq: RocketMQ, broker: RocketMQBroker) -> None:
        super().__init__(broker.config.broker_parser, broker.config.broker_decoder)
        self._rocketmq, self._context = rocketmq, broker.context

    async def publish(self, cmd: RocketMQCommand) -> SendResult:
        """Sends the message, and waits until it has been handled. Does not wait if a handler calls it."""
        sent = await super().publish(cmd)
        if self._context.get_local("message") is None:
            await self._rocketmq.advance(seconds=A_MOMENT_S)
        return sent
