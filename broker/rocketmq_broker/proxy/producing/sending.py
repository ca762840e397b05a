"""Implements SendMessage, which sends each message of a call to the broker (RocketMQ's SendMessageActivity)."""

import asyncio
import zlib
from collections.abc import Callable, Sequence
from typing import Final

from rocketmq_broker.message import topics
from rocketmq_broker.message.ids import parse_offset_message_id
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers.send import SendMessageRequestHeaderV2, SendMessageResponseHeader
from rocketmq_broker.proxy.answers import OK, CallRefused
from rocketmq_broker.proxy.clients.routes import AUTO_CREATED_QUEUES, TopicRoutes
from rocketmq_broker.proxy.connections.session import ClientSession
from rocketmq_broker.proxy.messages.request_size import MAX_MESSAGES
from rocketmq_broker.proxy.messages.sent import SentMessages, sys_flag_of, type_of
from rocketmq_broker.proxy.producing.transactions import TransactionHandle
from rocketmq_broker.proxy.protos import definition_pb2 as api
from rocketmq_broker.proxy.protos import service_pb2 as service

_MESSAGES_OF_A_TURN: Final = 16
"""The number of messages checked in one turn of the event loop. Each message may have up to 256 properties and keys."""
_ANY_QUEUE: Final = -1


class Sending:
    """Sends clients' messages. Each message of a call is stored separately, with its own result."""

    def __init__(self, routes: TopicRoutes, messages: SentMessages, clock: Callable[[], int]) -> None:
        self._routes = routes
        self._messages = messages
        self._clock = clock

    async def send(self, session: ClientSession, request: service.SendMessageRequest) -> service.SendMessageResponse:
        """Returns the messages' results once the messages are as durable as configured.

        Raises CallRefused if no message may be sent.
        """
        if not 0 < len(request.messages) <= MAX_MESSAGES:
            raise CallRefused(
                api.MESSAGE_CORRUPTED, f"SendMessage needs 1 to {MAX_MESSAGES} messages, not {len(request.messages)}"
            )
        if any(message.topic != request.messages[0].topic for message in request.messages):
            raise CallRefused(api.MESSAGE_CORRUPTED, "all messages of a call must have the same topic")
        self._routes.refuse_unwritable(request.messages[0].topic.name)
        entries = await self._send_each(session, request.messages)
        codes = {entry.status.code for entry in entries}
        several = api.Status(code=api.MULTIPLE_RESULTS, message="the messages have different results")
        return service.SendMessageResponse(status=entries[0].status if len(codes) == 1 else several, entries=entries)

    async def _send_each(self, session: ClientSession, messages: Sequence[api.Message]) -> list[service.SendResultEntry]:
        """Sends the messages concurrently, and returns their results. Yields to the event loop between groups of messages."""
        tasks = []
        async with asyncio.TaskGroup() as group:
            for number, message in enumerate(messages, start=1):
                tasks.append(group.create_task(self._send(session, message)))
                if number % _MESSAGES_OF_A_TURN == 0:
                    await asyncio.sleep(0)
        return [task.result() for task in tasks]

    async def _send(self, session: ClientSession, message: api.Message) -> service.SendResultEntry:
        try:
            header = self._header(message)
            answer = await session.invoke(RequestCode.SEND_MESSAGE_V2, header, message.body)
        except CallRefused as refusal:
            return service.SendResultEntry(status=refusal.status)
        stored = answer.decode_header(SendMessageResponseHeader)
        message_id = message.system_properties.message_id
        # Apache's proxy returns the message id as the transaction id of every message.
        entry = service.SendResultEntry(status=OK, message_id=message_id, transaction_id=message_id, offset=stored.queue_offset)
        if message.system_properties.message_type == api.TRANSACTION:
            handle = TransactionHandle(parse_offset_message_id(stored.msg_id).commit_log_offset, stored.queue_offset)
            entry.transaction_id = handle.transaction_id(message_id)
        return entry

    def _header(self, message: api.Message) -> SendMessageRequestHeaderV2:
        topic, system = message.topic.name, message.system_properties
        kind = type_of(message)
        if kind not in self._routes.accepted_types(topic):
            reason = (
                f"the topic {topic} does not accept messages of type {api.MessageType.Name(kind)}: see its attribute message.type"
            )
            raise CallRefused(api.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE, reason)
        return SendMessageRequestHeaderV2(
            producer_group=topic,
            topic=topic,
            default_topic=topics.AUTO_CREATE_TOPIC,
            default_topic_queue_nums=AUTO_CREATED_QUEUES,
            queue_id=self._queue_of_group(topic, system.message_group) if system.message_group else _ANY_QUEUE,
            sys_flag=sys_flag_of(message),
            born_timestamp=self._born_ms(system),
            flag=0,
            properties=self._messages.properties_of(message, self._clock()),
        )

    def _born_ms(self, system: api.SystemProperties) -> int:
        if not system.HasField("born_timestamp"):
            return self._clock()
        try:
            return system.born_timestamp.ToMilliseconds()
        except ValueError as error:
            raise CallRefused(api.BAD_REQUEST, f"invalid born timestamp: {error}") from None

    def _queue_of_group(self, topic: str, message_group: str) -> int:
        """Returns the queue of a message group. The queue changes only if the topic's number of queues changes."""
        config = self._routes.topic(topic)
        return zlib.crc32(message_group.encode()) % max(1, config.write_queue_nums)
