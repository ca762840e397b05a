"""Encodes the messages of a broker's publishers, and sends them with one client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, cast

from fast_depends.library.serializer import SerializerProto
from faststream._internal.endpoint.utils import ParserComposition
from faststream._internal.parser import DefaultCodec
from faststream._internal.producer import ProducerProto
from faststream.exceptions import FeatureNotSupportedException, IncorrectState
from faststream.message import decode_message

from faststream_rocketmq.messages import (
    CONTENT_TYPE,
    CORRELATION_ID,
    NO_REQUESTS,
    ReceivedMessage,
    RocketMQCommand,
    RocketMQDelivery,
)
from rocketmq_broker.client import Message, Producer, SendResult, TransactionProducer

if TYPE_CHECKING:
    from faststream._internal.parser import CodecProto
    from faststream._internal.types import CustomCallable
    from faststream.message import StreamMessage


async def parse(delivery: RocketMQDelivery) -> ReceivedMessage:
    """Returns the message for the handler."""
    return ReceivedMessage(delivery)


async def decode(message: StreamMessage[Any]) -> Any:
    """Decodes the body according to its content type.

    Without a content type, returns the decoded JSON, or the bytes if they are not JSON.
    """
    return decode_message(message)


class RocketMQProducer(ProducerProto[RocketMQCommand]):
    """Sends the messages of one broker's publishers."""

    def __init__(self, parser: CustomCallable | None, decoder: CustomCallable | None) -> None:
        self._parser = ParserComposition(parser, parse)
        self._decoder = ParserComposition(decoder, decode)
        self.codec: CodecProto = DefaultCodec()
        self._serializer: SerializerProto | None = None
        self._client: Producer | None = None

    def connect(self, client: Producer, serializer: SerializerProto | None, codec: CodecProto | None) -> None:
        """Sends messages with `client` until `disconnect` is called. The client must be running."""
        self._client, self._serializer, self.codec = client, serializer, codec or DefaultCodec()

    def disconnect(self) -> None:
        """Stops using the client."""
        self._client = None

    async def publish(self, cmd: RocketMQCommand) -> SendResult:
        """Sends the message.

        Returns once the broker has stored the message. For a transactional message, waits until the local transaction has ended.
        """
        if self._client is None:
            raise IncorrectState("the RocketMQ broker is not connected: await broker.connect() or broker.start() first")
        message = await self._message(cmd)
        if not cmd.is_transactional:
            return await self._client.send(message)
        return await cast(TransactionProducer, self._client).send_message_in_transaction(message, cmd.arg)

    async def _message(self, cmd: RocketMQCommand) -> Message:
        body, content_type = await self.codec.encode(cmd.body, self._serializer)
        named = {CONTENT_TYPE: content_type, CORRELATION_ID: cmd.correlation_id}
        headers = {name: str(value) for name, value in {**named, **cmd.headers}.items() if value is not None}
        return Message.of(
            cmd.destination,
            body,
            tags=cmd.tags,
            keys=cmd.keys,
            delay_time_level=cmd.delay_time_level,
            user_properties=headers,
        )

    async def request(self, cmd: RocketMQCommand) -> NoReturn:
        """Raises FeatureNotSupportedException, because requests are not supported."""
        raise FeatureNotSupportedException(NO_REQUESTS)

    async def publish_batch(self, cmd: RocketMQCommand) -> NoReturn:
        """Raises FeatureNotSupportedException, because batches are not supported."""
        raise FeatureNotSupportedException("faststream-rocketmq does not support batches: use rocketmq_broker.client.Producer")
