"""Request and reply: a producer sends a message and waits for the consumer's reply (RocketMQ's RequestFutureHolder)."""

import asyncio
import ipaddress
import logging
import struct
from collections.abc import Callable
from typing import Final

from rocketmq_broker.client.errors import RequestTimedOut, SendFailed
from rocketmq_broker.client.instance.instance import RequestHandlers
from rocketmq_broker.message import IllegalMessage, Message, MessageError, MessageExt, properties, topics
from rocketmq_broker.message.record import decode_record, encode_record, host_bytes, to_message
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_response
from rocketmq_broker.protocol.headers.send import ReplyMessageRequestHeader
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import RequestRefused

logger = logging.getLogger(__name__)

MAX_WAITING: Final = 10_000
"""The maximum number of requests of one producer that wait for a reply."""
_CORRELATION_BYTES: Final = 16


class PendingReplies:
    """The requests of one producer that wait for a reply. Use it on the event loop only."""

    def __init__(self, nonce: Callable[[int], bytes]) -> None:
        """`nonce` returns unique random bytes."""
        self._waiting: dict[str, asyncio.Future[MessageExt]] = {}
        self._new_id = nonce
        self.handlers: RequestHandlers = {RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT: self._arrived}

    def begin(self, message: Message, client_id: str, timeout_ms: int) -> tuple[str, Message]:
        """Returns the request's correlation id, and the message that carries it. Raises SendFailed if too many requests wait."""
        if len(self._waiting) >= MAX_WAITING:
            raise SendFailed(f"too many requests are waiting for a reply: at most {MAX_WAITING}; wait for some replies first")
        correlation_id = self._new_id(_CORRELATION_BYTES).hex()
        self._waiting[correlation_id] = asyncio.get_running_loop().create_future()
        request = message.with_properties(
            {
                properties.CORRELATION_ID: correlation_id,
                properties.REPLY_TO_CLIENT: client_id,
                properties.MESSAGE_TTL: str(timeout_ms),
            }
        )
        return correlation_id, request

    async def reply(self, correlation_id: str, topic: str, timeout_ms: int) -> MessageExt:
        """Waits for the reply and returns it. Raises RequestTimedOut if none arrives within `timeout_ms`."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await self._waiting[correlation_id]
        except TimeoutError:
            raise RequestTimedOut(
                f"no reply to the request to topic {topic} in time ({timeout_ms} ms): "
                "a consumer must send the reply that create_reply_message(request, body) returns"
            ) from None

    def end(self, correlation_id: str) -> None:
        """Stops waiting for the reply."""
        self._waiting.pop(correlation_id, None)

    def _arrived(self, connection: Connection, request: RemotingCommand) -> bytes:
        header = request.decode_header(ReplyMessageRequestHeader)
        try:
            reply = _reply(header, request.body)
        except (MessageError, struct.error, ValueError, OverflowError) as error:  # values out of a record's range
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"the reply cannot be read: {error}") from None
        waiting = self._waiting.get(reply.properties.get(properties.CORRELATION_ID, ""))
        if waiting is None or waiting.done():
            logger.warning("ignored a reply from %s: it came too late, or this producer sent no such request", reply.born_host)
        else:
            waiting.set_result(reply)
        return encode_response(request, ResponseCode.SUCCESS)


def create_reply_message(request: MessageExt, body: bytes | str) -> Message:
    """Returns the reply to a consumed request, for any producer to send (RocketMQ's MessageUtil.createReplyMessage).

    Raises IllegalMessage if the message is not a request.
    """
    given = request.properties
    cluster, client_id = given.get(properties.CLUSTER), given.get(properties.REPLY_TO_CLIENT)
    if not cluster or not client_id:
        raise IllegalMessage(f"message {request.message_id} is not a request: producers send requests with request(message)")
    return Message.of(topics.reply_topic(cluster), body).with_properties(
        {
            properties.MESSAGE_TYPE: properties.REPLY,
            properties.CORRELATION_ID: given.get(properties.CORRELATION_ID, ""),
            properties.REPLY_TO_CLIENT: client_id,
            properties.MESSAGE_TTL: given.get(properties.MESSAGE_TTL, ""),
        }
    )


def _reply(header: ReplyMessageRequestHeader, body: bytes) -> MessageExt:
    record = encode_record(
        topic=header.topic.encode(),
        queue_id=header.queue_id,
        queue_offset=0,
        commit_log_offset=0,
        flag=header.flag,
        sys_flag=header.sys_flag,
        born_timestamp=header.born_timestamp,
        born_host=_host(header.born_host),
        store_timestamp=header.store_timestamp,
        store_host=_host(header.store_host),
        reconsume_times=header.reconsume_times,
        prepared_transaction_offset=0,
        body=body,
        properties=header.properties.encode(),
    )
    return to_message(decode_record(record))


def _host(address: str) -> bytes:
    """Encodes `HOST:PORT` or Java's `/HOST:PORT` as in a record. Encodes any other text as 0.0.0.0:0."""
    host, _, port = address.rpartition("/")[2].rpartition(":")
    host = host.strip("[]")
    try:
        if ipaddress.ip_address(host).version == 4:
            return host_bytes(host, int(port))
    except (ValueError, struct.error):
        pass
    return host_bytes("0.0.0.0", 0)
