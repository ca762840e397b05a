"""The RocketMQ broker class for FastStream applications."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Never

import anyio
from fast_depends import Provider, dependency_provider
from faststream._internal.broker import BrokerUsecase
from faststream._internal.constants import EMPTY
from faststream._internal.context.repository import ContextRepo
from faststream._internal.di import FastDependsConfig
from faststream._internal.logger import make_logger_state
from faststream.exceptions import FeatureNotSupportedException, SetupError
from faststream.middlewares import AckPolicy
from faststream.specification.schema import BrokerSpec

from faststream_rocketmq.config import RocketMQBrokerConfig, RocketMQLoggerStorage
from faststream_rocketmq.messages import NO_REQUESTS, RocketMQCommand, RocketMQDelivery
from faststream_rocketmq.producer import RocketMQProducer
from faststream_rocketmq.publisher import TransactionalPublisher
from faststream_rocketmq.registrator import RocketMQRegistrator
from faststream_rocketmq.subscriber import RocketMQSubscriber
from rocketmq_broker.client import Producer, SendResult, TransactionProducer, name_server_addresses

if TYPE_CHECKING:
    from fast_depends.dependencies import Dependant
    from fast_depends.library.serializer import SerializerProto
    from faststream._internal.basic_types import LoggerProto
    from faststream._internal.parser import CodecProto
    from faststream._internal.types import BrokerMiddleware, CustomCallable
    from faststream.specification.schema.extra import Tag, TagDict

    from rocketmq_broker.client import ClientTls, SessionCredentials


class RocketMQBroker(RocketMQRegistrator, BrokerUsecase[RocketMQDelivery, Producer, RocketMQBrokerConfig]):
    """The RocketMQ broker of a FastStream application.

    It has one producer for all publishers, and one consumer per subscriber.
    """

    def __init__(
        self,
        namesrv_addr: str | None = None,
        *,
        group: str = "faststream",
        credentials: SessionCredentials | None = None,
        tls: ClientTls | bool | None = None,
        graceful_timeout: float | None = 15.0,
        ack_policy: AckPolicy = EMPTY,
        decoder: CustomCallable | None = None,
        parser: CustomCallable | None = None,
        codec: CodecProto | None = None,
        dependencies: Sequence[Dependant] = (),
        middlewares: Sequence[BrokerMiddleware[Any, Any]] = (),
        routers: Iterable[RocketMQRegistrator] = (),
        description: str | None = None,
        tags: Iterable[Tag | TagDict] = (),
        logger: LoggerProto | None = EMPTY,
        log_level: int = logging.INFO,
        apply_types: bool = True,
        serializer: SerializerProto | None = EMPTY,
        provider: Provider | None = None,
        context: ContextRepo | None = None,
    ) -> None:
        """Creates a broker that is not connected. `group` is the producer group of the publishers.

        Use one group per service, because the broker may send a check-back to any member of the group. `namesrv_addr`,
        `credentials` and `tls` have the same meaning and defaults as in `rocketmq_broker.client.Producer`.
        `graceful_timeout` is the number of seconds for which `stop` waits for running handlers. The other parameters are
        the same as in FastStream's other brokers.
        """
        self.group = group
        super().__init__(
            routers=routers,
            config=RocketMQBrokerConfig(
                client_options={"namesrv_addr": namesrv_addr, "credentials": credentials, "tls": tls},
                producer=RocketMQProducer(parser, decoder),
                broker_middlewares=middlewares,
                broker_parser=parser,
                broker_decoder=decoder,
                broker_codec=codec,
                logger=make_logger_state(logger=logger, log_level=log_level, default_storage_cls=RocketMQLoggerStorage),
                fd_config=FastDependsConfig(
                    use_fastdepends=apply_types,
                    serializer=serializer,
                    provider=provider or dependency_provider,
                    context=context or ContextRepo(),
                ),
                broker_dependencies=dependencies,
                graceful_timeout=graceful_timeout,
                ack_policy=ack_policy,
                extra_context={"broker": self},
            ),
            specification=BrokerSpec(
                description=description,
                url=[f"rocketmq://{address}" for address in name_server_addresses(namesrv_addr)],
                protocol="rocketmq",
                protocol_version=None,
                tags=tags,
                security=None,
            ),
        )

    async def _connect(self) -> Producer:
        self._setup_logger()  # the transaction handlers must start before the client, which calls them
        config = self.config.broker_config
        transactional = [one for one in self.publishers if isinstance(one, TransactionalPublisher)]
        _refuse_twice("a transactional publisher for topic", [one.topic for one in transactional])
        if transactional:
            listeners = {one.topic: await one.listener() for one in transactional}
            client: Producer = TransactionProducer(self.group, listeners, **config.client_options)
        else:
            client = Producer(self.group, **config.client_options)
        await client.start()
        self._sender.connect(client, config.fd_config._serializer, self.config.broker_codec)
        return client

    @property
    def _sender(self) -> RocketMQProducer:
        sender = self.config.producer
        assert isinstance(sender, RocketMQProducer)
        return sender

    async def start(self) -> None:
        """Connects to RocketMQ and starts all subscribers. Raises SetupError or the client's IllegalConfiguration."""
        _refuse_twice("a subscriber in group", [one.group for one in self.subscribers if isinstance(one, RocketMQSubscriber)])
        await self.connect()
        await super().start()

    async def stop(
        self,
        exc_type: type[BaseException] | None = None,
        exc_val: BaseException | None = None,
        exc_tb: TracebackType | None = None,
    ) -> None:
        """Stops the subscribers and then the producer, which waits for running local transactions."""
        await super().stop(exc_type, exc_val, exc_tb)
        client, self._connection = self._connection, None
        if client is not None:
            await client.shutdown()
        self._sender.disconnect()

    async def ping(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 (FastStream's own signature)
        """Returns True if every broker in the producer's routes responds to a heartbeat within `timeout` seconds (default: 5)."""
        if self._connection is None:
            return False
        with anyio.move_on_after(timeout or 5.0):
            return await self._connection.is_connected()
        return False

    async def publish(
        self,
        message: Any = None,
        topic: str = "",
        *,
        tags: str | None = None,
        keys: Iterable[str] = (),
        delay_time_level: int = 0,
        headers: Mapping[str, str] | None = None,
        correlation_id: str | None = None,
    ) -> SendResult:
        """Sends one message to the topic, and returns once the broker has stored it. Raises ClientError."""
        command = RocketMQCommand(
            message,
            topic=topic,
            tags=tags,
            keys=keys,
            delay_time_level=delay_time_level,
            headers=headers,
            correlation_id=correlation_id or self.config.id_generator(),
        )
        sent: SendResult = await self._basic_publish(command, producer=self.config.producer)
        return sent

    async def request(self, *arguments: Any, **options: Any) -> Never:
        """Raises FeatureNotSupportedException, because requests are not supported."""
        raise FeatureNotSupportedException(NO_REQUESTS)


def _refuse_twice(what: str, names: Sequence[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SetupError(f"{what} {twice[0]} is defined twice: remove one definition")
