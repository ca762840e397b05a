"""The decorators `subscriber`, `publisher` and `transactional_publisher` of brokers and routers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from faststream._internal.broker.registrator import Registrator
from faststream._internal.broker.router import BrokerRouter
from faststream._internal.configs import PublisherSpecificationConfig, SubscriberSpecificationConfig
from faststream._internal.constants import EMPTY
from faststream.middlewares import AckPolicy

from faststream_rocketmq.config import (
    RocketMQBrokerConfig,
    RocketMQHandlerConfig,
    RocketMQPublisherConfig,
    RocketMQSubscriberConfig,
)
from faststream_rocketmq.messages import RocketMQDelivery
from faststream_rocketmq.publisher import RocketMQPublisher, TransactionalPublisher
from faststream_rocketmq.subscriber import RocketMQHandler, RocketMQSubscriber

if TYPE_CHECKING:
    from fast_depends.dependencies import Dependant
    from faststream._internal.parser import CodecProto
    from faststream._internal.types import BrokerMiddleware, CustomCallable


class RocketMQRegistrator(Registrator[RocketMQDelivery, RocketMQBrokerConfig]):
    """Registers handlers and publishers. Base class of RocketMQBroker and RocketMQRouter."""

    def subscriber(  # type: ignore[override]
        self,
        topic: str,
        *,
        group: str,
        tags: str = "*",
        orderly: bool = False,
        ack_policy: AckPolicy = EMPTY,
        dependencies: Sequence[Dependant] = (),
        parser: CustomCallable | None = None,
        decoder: CustomCallable | None = None,
        codec: CodecProto | None = None,
        persistent: bool = True,
        title: str | None = None,
        description: str | None = None,
        include_in_schema: bool = True,
        **consumer_options: Any,
    ) -> RocketMQSubscriber:
        """Subscribes the decorated handler to the topic's messages with tags such as `*` or `a || b`, as a member of `group`.

        If `orderly` is True, each queue is consumed in order, and a failed message blocks the messages after it.
        `consumer_options` are settings of `rocketmq_broker.client.PushConsumer`, such as `consume_from_where` or
        `max_reconsume_times`. By default, a message is redelivered if its handler raises an exception, and is moved to the
        dead-letter topic after 16 redeliveries. With AckPolicy.REJECT_ON_ERROR the message is moved after the first exception.
        """
        config = RocketMQSubscriberConfig(
            _outer_config=self._shared,
            _ack_policy=ack_policy,
            topic=topic,
            group=group,
            tags=tags,
            is_orderly=orderly,
            consumer_options=consumer_options,
        )
        specification = SubscriberSpecificationConfig(title_=title, description_=description, include_in_schema=include_in_schema)
        subscriber = RocketMQSubscriber(config, specification)
        super().subscriber(subscriber, persistent=persistent)
        return subscriber.add_call(parser_=parser, decoder_=decoder, codec_=codec, dependencies_=dependencies)

    def publisher(  # type: ignore[override]
        self,
        topic: str,
        *,
        tags: str | None = None,
        headers: Mapping[str, str] | None = None,
        persistent: bool = True,
        title: str | None = None,
        description: str | None = None,
        schema: Any | None = None,
        include_in_schema: bool = True,
    ) -> RocketMQPublisher:
        """Returns a publisher for the topic.

        The publisher sends the results of handlers that it decorates, and messages passed to its method `publish`.
        """
        publisher = RocketMQPublisher(
            *self._publisher_configs(topic, tags, headers, schema, title, description, include_in_schema)
        )
        super().publisher(publisher, persistent=persistent)
        return publisher

    def transactional_publisher(
        self,
        topic: str,
        *,
        tags: str | None = None,
        headers: Mapping[str, str] | None = None,
        title: str | None = None,
        description: str | None = None,
        schema: Any | None = None,
        include_in_schema: bool = True,
    ) -> TransactionalPublisher:
        """Returns a publisher of transactional messages. Decorate the publisher's two handlers before the broker connects."""
        publisher = TransactionalPublisher(
            *self._publisher_configs(topic, tags, headers, schema, title, description, include_in_schema),
            local=self._half(topic),
            check=self._half(topic),
        )
        super().publisher(publisher)
        return publisher

    @property
    def _shared(self) -> RocketMQBrokerConfig:
        return cast(RocketMQBrokerConfig, self.config)

    def _half(self, topic: str) -> RocketMQHandler:
        config = RocketMQHandlerConfig(_outer_config=self._shared, _ack_policy=AckPolicy.MANUAL, topic=topic)
        handler = RocketMQHandler(config, SubscriberSpecificationConfig(title_=None, description_=None, include_in_schema=False))
        super().subscriber(handler)
        return handler.add_call(parser_=None, decoder_=None, dependencies_=())

    def _publisher_configs(
        self,
        topic: str,
        tags: str | None,
        headers: Mapping[str, str] | None,
        schema: Any | None,
        title: str | None,
        description: str | None,
        include_in_schema: bool,
    ) -> tuple[RocketMQPublisherConfig, PublisherSpecificationConfig]:
        config = RocketMQPublisherConfig(_outer_config=self._shared, topic=topic, tags=tags, headers=dict(headers or {}))
        return config, PublisherSpecificationConfig(
            schema_=schema, title_=title, description_=description, include_in_schema=include_in_schema
        )


class RocketMQRouter(RocketMQRegistrator, BrokerRouter[RocketMQDelivery, RocketMQBrokerConfig]):
    """A group of handlers and publishers for `broker.include_router`. `prefix` is prepended to their topics."""

    def __init__(
        self,
        prefix: str = "",
        *,
        dependencies: Sequence[Dependant] = (),
        middlewares: Sequence[BrokerMiddleware[Any, Any]] = (),
        routers: Iterable[RocketMQRegistrator] = (),
        parser: CustomCallable | None = None,
        decoder: CustomCallable | None = None,
        include_in_schema: bool | None = None,
    ) -> None:
        config = RocketMQBrokerConfig(
            prefix=prefix,
            broker_dependencies=dependencies,
            broker_middlewares=middlewares,
            broker_parser=parser,
            broker_decoder=decoder,
            include_in_schema=include_in_schema,
        )
        super().__init__(handlers=(), config=config, routers=routers)
