"""What a broker's publishers and subscribers share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from faststream._internal.configs import BrokerConfig, PublisherUsecaseConfig, SubscriberUsecaseConfig
from faststream._internal.constants import EMPTY
from faststream._internal.logger import DefaultLoggerStorage
from faststream._internal.logger.logging import get_broker_logger
from faststream.middlewares import AckPolicy


@dataclass(kw_only=True)
class RocketMQBrokerConfig(BrokerConfig):
    """The settings of a broker; `client_options` are those that all its clients get."""

    client_options: dict[str, Any] = field(default_factory=dict)


class OnTopic:
    """What publishers, handlers and their channels on the AsyncAPI page have: a topic."""

    _outer_config: Any
    _topic: str

    @property
    def topic(self) -> str:
        """The topic, with the prefixes of the routers around it."""
        return f"{self._outer_config.prefix}{self._topic}"


@dataclass(kw_only=True)
class RocketMQPublisherConfig(PublisherUsecaseConfig):
    """The settings of a publisher: what its messages get unless they have their own."""

    topic: str
    tags: str | None
    headers: dict[str, str]


@dataclass(kw_only=True)
class RocketMQHandlerConfig(SubscriberUsecaseConfig):
    """The settings of what calls handlers."""

    topic: str

    @property
    def ack_policy(self) -> AckPolicy:
        """Returns the subscriber's policy, or the broker's. By default a message whose handler raised comes again."""
        policy = self._outer_config.ack_policy if self._ack_policy is EMPTY else self._ack_policy
        return AckPolicy.NACK_ON_ERROR if policy is EMPTY else policy


@dataclass(kw_only=True)
class RocketMQSubscriberConfig(RocketMQHandlerConfig):
    """The settings of a subscriber; `consumer_options` are those of the client's PushConsumer."""

    group: str
    tags: str
    is_orderly: bool
    consumer_options: dict[str, Any]


class RocketMQLoggerStorage(DefaultLoggerStorage):
    """Makes the logger of a broker, whose lines name topic and message id."""

    def register_subscriber(self, params: dict[str, Any]) -> None:
        """Does nothing: no column has the width of its longest value."""

    def get_logger(self, *, context: Any) -> Any:
        """Returns the logger, the same one at each call."""
        logger = self._get_logger_ref()
        if logger is None:
            logger = get_broker_logger(
                name="rocketmq",
                default_context={"topic": ""},
                message_id_ln=32,
                fmt="%(asctime)s %(levelname)-8s - %(topic)s | %(message_id)-32s - %(message)s",
                context=context,
                log_level=self.logger_log_level,
            )
            self._logger_ref.add(logger)
        return logger
