"""The messages that handlers receive and publishers send."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from faststream.message import StreamMessage
from faststream.response import PublishCommand, PublishType, Response

from rocketmq_broker.client import ConsumeContext, ConsumeStatus, Message

CONTENT_TYPE: Final = "content-type"
CORRELATION_ID: Final = "correlation_id"
"""The name of the property with the correlation id. FastStream's other brokers use the same name."""
NO_REQUESTS: Final = "faststream-rocketmq does not support requests: use rocketmq_broker.client.Producer"
"""The error message of the `request` methods of broker, publisher and producer."""
_TO_THE_DEAD_LETTERS: Final = -1


@dataclass(slots=True)
class RocketMQDelivery:
    """One call of a handler, with the message and the consume status to return to the client."""

    message: Message
    context: ConsumeContext | None = None
    """The context of the consumer. None in a local transaction and in a check-back, where no message is acknowledged."""
    arg: object = None
    answer: ConsumeStatus | None = None


class ReceivedMessage(StreamMessage[Message]):
    """The message that a handler receives. `raw_message` is the client's message with tags, keys and queue offset.

    `headers` contains all properties of the message, including RocketMQ's. `transaction_id` is the same in the local transaction,
    in the check-back and in consumers. In a local transaction, `arg` is the argument `arg` of `publish`; elsewhere it is None.
    """

    def __init__(self, delivery: RocketMQDelivery) -> None:
        message = delivery.message
        headers = dict(message.properties)
        super().__init__(
            raw_message=message,
            body=message.body,
            headers=headers,
            content_type=headers.get(CONTENT_TYPE),
            correlation_id=headers.get(CORRELATION_ID),
            message_id=message.transaction_id,
        )
        self.transaction_id = message.transaction_id
        self.arg = delivery.arg
        self._delivery = delivery

    async def ack(self) -> None:
        """Acknowledges the message. The acknowledgement is sent when the handler has returned."""
        self._answer(ConsumeStatus.CONSUME_SUCCESS)
        await super().ack()

    async def nack(self, delay_level: int = 0) -> None:
        """Requests a redelivery of the message after the delay of `delay_level`.

        With level 0, the broker chooses the delay and increases it with each redelivery.
        """
        self._answer(ConsumeStatus.RECONSUME_LATER, delay_level)
        await super().nack()

    async def reject(self) -> None:
        """Moves the message to the dead-letter topic of the consumer group."""
        self._answer(ConsumeStatus.RECONSUME_LATER, _TO_THE_DEAD_LETTERS)
        await super().reject()

    def _answer(self, status: ConsumeStatus, delay_level: int = 0) -> None:
        if self.committed is None:
            self._delivery.answer = status
            if self._delivery.context is not None:
                self._delivery.context.delay_level_when_next_consume = delay_level


class RocketMQResponse(Response):
    """The result of a handler, with the tags, keys and delay level of the message to publish."""

    def __init__(
        self,
        body: Any,
        *,
        tags: str | None = None,
        keys: Iterable[str] = (),
        delay_time_level: int = 0,
        headers: Mapping[str, str] | None = None,
        correlation_id: str | None = None,
    ) -> None:
        super().__init__(body, headers=dict(headers or {}), correlation_id=correlation_id)
        self.tags, self.keys, self.delay_time_level = tags, tuple(keys), delay_time_level

    def as_publish_command(self) -> "RocketMQCommand":
        """Returns the command that the publisher sends. The publisher sets the topic."""
        return RocketMQCommand(
            self.body,
            tags=self.tags,
            keys=self.keys,
            delay_time_level=self.delay_time_level,
            headers=self.headers,
            correlation_id=self.correlation_id,
        )


class RocketMQCommand(PublishCommand):
    """One message to send. FastStream passes it to middlewares."""

    def __init__(
        self,
        body: Any,
        *,
        topic: str = "",
        tags: str | None = None,
        keys: Iterable[str] = (),
        delay_time_level: int = 0,
        headers: Mapping[str, str] | None = None,
        correlation_id: str | None = None,
        publish_type: PublishType = PublishType.PUBLISH,
    ) -> None:
        super().__init__(
            body, destination=topic, headers=dict(headers or {}), correlation_id=correlation_id, _publish_type=publish_type
        )
        self.tags, self.keys, self.delay_time_level = tags, tuple(keys), delay_time_level
        self.is_transactional = False
        self.arg: object = None

    @classmethod
    def of(cls, command: PublishCommand) -> "RocketMQCommand":
        """Converts a command to a RocketMQCommand with the same body and headers. Returns a RocketMQCommand unchanged."""
        if isinstance(command, RocketMQCommand):
            return command
        return cls(
            command.body,
            topic=command.destination,
            headers=command.headers,
            correlation_id=command.correlation_id,
            publish_type=command.publish_type,
        )
