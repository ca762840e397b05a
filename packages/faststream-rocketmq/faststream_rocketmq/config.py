"""The configuration of brokers, publishers and subscribers."""

from dataclasses import dataclass, field
from typing import Any

from faststream._internal.configs import BrokerConfig, PublisherUsecaseConfig, SubscriberUsecaseConfig
from faststream._internal.constants import EMPTY
from faststream._internal.logger import DefaultLoggerStorage
from faststream._internal.logger.logging import get_broker_logger
from faststream.middlewares import AckPolicy


@dataclass(kw_only=True)
class RocketMQBrokerConfig(BrokerConfig):
    """The settings of a broker. `client_options` are passed to every producer and consumer of the broker."""

    client_options: dict[str, Any] = field(default_factory=dict)


class OnTopic:
    """Base class of publishers, handlers and AsyncAPI channels. Each of them belongs to one topic."""

    _outer_config: Any
    _topic: str

    @property
    def topic(self) -> str:
        """Returns the topic, preceded by the prefixes of the routers that contain this object."""
        return f"{self._outer_config.prefix}{self._topic}"


@dataclass(kw_only=True)
class RocketMQPublisherConfig(PublisherUsecaseConfig):
    """The settings of a publisher, including the default tags and headers of its messages."""

    topic: str
    tags: str | None
    headers: dict[str, str]


@dataclass(kw_only=True)
class RocketMQHandlerConfig(SubscriberUsecaseConfig):
    """The settings of a RocketMQHandler."""

    topic: str

    @property
    def ack_policy(self) -> AckPolicy:
        """Returns the subscriber's acknowledgement policy, or the broker's policy if the subscriber has none.

        By default, a message is redelivered if its handler raises an exception.
        """
        policy = self._outer_config.ack_policy if self._ack_policy is EMPTY else self._ack_policy
        return AckPolicy.NACK_ON_ERROR if policy is EMPTY else policy


@dataclass(kw_only=True)
class RocketMQSubscriberConfig(RocketMQHandlerConfig):
    """The settings of a subscriber. `consumer_options` are passed to the subscriber's PushConsumer."""

    group: str
    tags: str
    is_orderly: bool
    consumer_options: dict[str, Any]


class RocketMQLoggerStorage(DefaultLoggerStorage):
    """Creates the logger of a broker. The logger's lines contain the topic and the message id."""

    def register_subscriber(self, params: dict[str, Any]) -> None:
        """Does nothing, because the columns of log lines have fixed widths."""

    def get_logger(self, *, context: Any) -> Any:
        """Returns the logger. Creates it at the first call."""
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
