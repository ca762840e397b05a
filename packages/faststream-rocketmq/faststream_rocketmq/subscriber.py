"""Subscribers. A push consumer calls their handlers."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final, NoReturn

from faststream._internal.configs import SubscriberSpecificationConfig
from faststream._internal.endpoint.publisher import PublisherProto
from faststream._internal.endpoint.subscriber import SubscriberSpecification, SubscriberUsecase
from faststream._internal.endpoint.subscriber.call_item import CallsCollection
from faststream.exceptions import FeatureNotSupportedException, SetupError, StopConsume
from faststream.message import StreamMessage
from faststream.middlewares import AckPolicy
from faststream.specification.asyncapi.utils import resolve_payloads
from faststream.specification.schema import Message as SpecifiedMessage
from faststream.specification.schema import Operation, SubscriberSpec

from faststream_rocketmq.config import OnTopic, RocketMQBrokerConfig, RocketMQHandlerConfig, RocketMQSubscriberConfig
from faststream_rocketmq.messages import RocketMQDelivery
from faststream_rocketmq.producer import decode, parse
from rocketmq_broker.client import ConsumeContext, ConsumeStatus, MessageExt, PushConsumer

_NO_ASKING: Final = "RocketMQ subscribers do not support get_one() and `async for`: use a handler"


class RocketMQHandlerSpecification(OnTopic, SubscriberSpecification[Any, Any]):
    """The AsyncAPI channel of a handler."""

    @property
    def channel_labels(self) -> list[str]:
        """Returns the topic as the only label of the channel."""
        return [self.topic]

    def get_schema(self) -> dict[str, SubscriberSpec]:
        """Returns the AsyncAPI description of the channel, keyed by the channel's name."""
        message = SpecifiedMessage(title=f"{self.name}:Message", payload=resolve_payloads(self.get_payloads()))
        operation = Operation(message=message, bindings=None)
        return {self.name: SubscriberSpec(address=self.topic, description=self.description, operation=operation, bindings=None)}


class RocketMQHandler(OnTopic, SubscriberUsecase[RocketMQDelivery]):
    """Calls the handlers for a topic's messages. The messages come from a subclass or from a transactional publisher."""

    _outer_config: RocketMQBrokerConfig

    def __init__(self, config: RocketMQHandlerConfig, specification: SubscriberSpecificationConfig) -> None:
        config.parser, config.decoder = parse, decode
        calls = CallsCollection[RocketMQDelivery]()
        channel = RocketMQHandlerSpecification(config._outer_config, specification, calls)
        self._topic = channel._topic = config.topic
        super().__init__(config, channel, calls)

    async def start(self) -> None:
        """Prepares the handlers, so that they can be called."""
        await super().start()
        self._post_start()

    async def stop(self) -> None:
        """Waits for the handlers that are still running."""
        await super().stop()

    def get_log_context(self, message: StreamMessage[Any] | None) -> dict[str, str]:
        """Returns the topic and the message id, which are shown in log lines."""
        return {"topic": self.topic, "message_id": getattr(message, "message_id", "")}

    def _make_response_publisher(self, message: StreamMessage[Any]) -> Iterable[PublisherProto[Any]]:
        return ()  # messages here never have reply_to

    async def get_one(self, *, timeout: float = 5) -> NoReturn:  # noqa: ASYNC109 (FastStream's own signature)
        """Raises FeatureNotSupportedException, because a subscriber cannot fetch single messages."""
        raise FeatureNotSupportedException(_NO_ASKING)

    def __aiter__(self) -> AsyncIterator[StreamMessage[RocketMQDelivery]]:
        """Raises FeatureNotSupportedException, because a subscriber cannot be iterated."""
        raise FeatureNotSupportedException(_NO_ASKING)


class RocketMQSubscriber(RocketMQHandler):
    """A member of a consumer group. A message is acknowledged when its handler has returned."""

    def __init__(self, config: RocketMQSubscriberConfig, specification: SubscriberSpecificationConfig) -> None:
        if config._ack_policy is AckPolicy.ACK_FIRST:
            raise SetupError("AckPolicy.ACK_FIRST is not supported, because messages are acknowledged after the handler: use ACK")
        if config.consumer_options.get("consume_message_batch_max_size", 1) != 1:
            raise SetupError("consume_message_batch_max_size is not supported, because handlers get one message: omit it")
        super().__init__(config, specification)
        self.group, self.tags = config.group, config.tags
        self._is_orderly, self._consumer_options = config.is_orderly, config.consumer_options
        self._consumer: PushConsumer | None = None
        self._stopping: asyncio.Task[None] | None = None

    def wants(self, tags: str | None) -> bool:
        """Returns True if the subscription matches this tag."""
        return self.tags == "*" or tags in [tag.strip() for tag in self.tags.split("||")]

    async def start(self) -> None:
        """Joins the consumer group if a handler is registered. Raises the client's IllegalConfiguration."""
        await super().start()
        if self.calls:
            consumer = PushConsumer(self.group, **self._outer_config.client_options, **self._consumer_options)
            consumer.subscribe(self.topic, self.tags)
            consumer.register_message_listener(self._listen, orderly=self._is_orderly)
            await consumer.start()
            self._consumer = consumer

    async def stop(self) -> None:
        """Stops consuming, waits for the handlers that are still running, and leaves the consumer group."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await consumer.shutdown(self._outer_config.graceful_timeout or 3.0)
        await super().stop()

    async def consume(self, msg: RocketMQDelivery) -> Any:
        """Calls the handler. If it raises StopConsume or SystemExit, stops the subscriber."""
        if not self.running:
            return None
        try:
            return await self.process_message(msg)
        except (StopConsume, SystemExit) as error:
            self.running = False
            self._stopping = asyncio.create_task(self.stop())
            if isinstance(error, SystemExit) and (app := self._outer_config.context.get("app")):
                app.exit()
        except Exception:
            pass  # FastStream's middlewares have logged the exception and set the status
        return None

    async def _listen(self, messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        delivery = RocketMQDelivery(messages[0], context)
        await self.consume(delivery)
        return delivery.answer or ConsumeStatus.RECONSUME_LATER
