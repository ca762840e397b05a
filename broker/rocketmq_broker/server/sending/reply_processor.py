"""Handles replies to request messages (RocketMQ's ReplyMessageProcessor).

A request message has the property REPLY_TO_CLIENT, the client id of the waiting producer. Its consumer sends the reply to topic
`<cluster>_REPLY_TOPIC`, and the broker pushes the reply to that client. The broker also stores the reply, as RocketMQ does.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from rocketmq_broker.message import properties as props
from rocketmq_broker.message.errors import IllegalMessage
from rocketmq_broker.message.ids import offset_message_id
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, ReplyTo, encode_response
from rocketmq_broker.protocol.headers.send import (
    ReplyMessageRequestHeader,
    SendHeader,
    SendMessageRequestHeader,
    SendMessageRequestHeaderV2,
    SendMessageResponseHeader,
)
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Handler, RequestRefused
from rocketmq_broker.remoting.errors import RemotingError
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.server.clients.producer_groups import ProducerGroups
from rocketmq_broker.server.durability.group_commit import GroupCommit
from rocketmq_broker.server.schedule.delay_levels import Place
from rocketmq_broker.server.sending.send_processor import SendDestination, sent_message
from rocketmq_broker.server.sending.sent_properties import refuse_too_much, stored_sys_flag, without_brokers_own
from rocketmq_broker.server.shares import RequestsInProgress
from rocketmq_broker.server.statistics.statistics import BrokerStatistics
from rocketmq_broker.server.statistics.traffic import count
from rocketmq_broker.server.topics.identity import BrokerIdentity
from rocketmq_broker.store import MessageStore, StoreUnwritable

logger = logging.getLogger(__name__)

PUSH_TIMEOUT_MS: Final = 10_000
"""The time, in milliseconds, within which the requester must confirm the reply (Broker2Client.callClient)."""
MAX_IN_PROGRESS: Final = 10_000
"""The maximum number of replies in progress, as in Apache's broker (replyThreadPoolQueueCapacity)."""
NOT_STORED_ID: Final = "0"
"""The message id of a reply that was not stored. Clients cannot decode a response without a message id."""


@dataclass(frozen=True, slots=True)
class _Push:
    """A reply that is being pushed to the requester, or that could not be pushed."""

    remark: str
    """The error text for the sender of the reply if the push fails."""
    answer: asyncio.Future[RemotingCommand] | None = None

    async def succeeds(self) -> bool:
        """Returns True if the requester confirms the reply."""
        if self.answer is None:
            return False
        try:
            return (await self.answer).code == ResponseCode.SUCCESS
        except RemotingError:
            return False


@dataclass(frozen=True, slots=True)
class _Place:
    """The position of a stored reply. It does not change after `durable` is done."""

    message_id: str
    queue_id: int
    queue_offset: int
    durable: asyncio.Future[None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyProcessor:
    """Pushes each reply to its requester, and stores it at the same time. Responds when both operations have ended.

    The response is SUCCESS if the requester has confirmed the reply, even if the reply was not stored. Otherwise it is
    SYSTEM_ERROR.
    """

    identity: BrokerIdentity
    store: MessageStore
    group_commit: GroupCommit
    destination: SendDestination
    producers: ProducerGroups
    region_id: str
    is_trace_on: bool
    is_storing: bool
    statistics: BrokerStatistics
    tasks: Tasks
    clock: Callable[[], int]
    _in_progress: RequestsInProgress = field(default_factory=RequestsInProgress, init=False)

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Returns the handlers of replies, with full or short header names."""
        return {RequestCode.SEND_REPLY_MESSAGE: self.reply, RequestCode.SEND_REPLY_MESSAGE_V2: self.reply_v2}

    def reply(self, connection: Connection, command: RemotingCommand) -> None:
        """Handles a reply with full names of the header fields."""
        self._handle(connection, command, command.decode_header(SendMessageRequestHeader))

    def reply_v2(self, connection: Connection, command: RemotingCommand) -> None:
        """Handles a reply with short names of the header fields."""
        self._handle(connection, command, command.decode_header(SendMessageRequestHeaderV2))

    def _handle(self, connection: Connection, command: RemotingCommand, header: SendHeader) -> None:
        topic, queue_id, _ = self.destination.of(header)
        sys_flag = stored_sys_flag(header.sys_flag, is_transactional=True)  # a reply never begins a transaction
        if self._in_progress.is_full_for(connection, MAX_IN_PROGRESS):
            raise RequestRefused(ResponseCode.SYSTEM_BUSY, "[OVERLOAD]system busy, start flow control for a while")
        encoded = without_brokers_own(header.properties.encode())
        refuse_too_much(header.topic, encoded)
        push = self._push(connection, header, sys_flag, encoded, command.body)
        place = self._append(connection, header, Place(topic, queue_id, encoded), sys_flag, command.body)
        reply_to = None if command.is_oneway else ReplyTo(command.opaque, command.serialize_type)
        self._in_progress.begin(connection)
        self.tasks.start("await the results of a reply", self._answer(connection, reply_to, push, place))

    def _push(self, connection: Connection, header: SendHeader, sys_flag: int, encoded: bytes, body: bytes) -> _Push:
        client_id = props.find(encoded, props.REPLY_TO_CLIENT)
        if client_id is None:
            return _Push(f"reply message properties[{props.REPLY_TO_CLIENT}] is null")
        requester = self.producers.connection_of(client_id)
        if requester is None:
            return _Push(f"push reply message fail, channel of <{client_id}> not found.")
        remark = f"push reply message to {client_id} fail."
        if not requester.is_writable:
            return _Push(remark)
        pushed = self._pushed_header(connection, header, sys_flag, encoded)
        try:
            answer = requester.start_invoke(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, pushed, body, timeout_ms=PUSH_TIMEOUT_MS)
        except RemotingError:
            return _Push(remark)
        return _Push(remark, answer)

    def _pushed_header(
        self, connection: Connection, header: SendHeader, sys_flag: int, encoded: bytes
    ) -> ReplyMessageRequestHeader:
        now_ms = self.clock()
        return ReplyMessageRequestHeader(
            producer_group=header.producer_group,
            topic=header.topic,
            default_topic=header.default_topic,
            default_topic_queue_nums=header.default_topic_queue_nums,
            queue_id=header.queue_id,
            sys_flag=sys_flag,
            born_timestamp=header.born_timestamp,
            flag=header.flag,
            properties=props.put(encoded, props.PUSH_REPLY_TIME, str(now_ms)).decode(),
            reconsume_times=header.reconsume_times,
            unit_mode=header.unit_mode,
            born_host=connection.peer,
            store_host=self.identity.address,
            store_timestamp=now_ms,
        )

    def _append(self, connection: Connection, header: SendHeader, place: Place, sys_flag: int, body: bytes) -> _Place:
        not_stored = _Place(NOT_STORED_ID, place.queue_id, 0)
        if not self.is_storing:
            return not_stored
        try:
            # Keep sysFlag, which marks compressed bodies. Apache's broker stores 0, and readers cannot decompress the body.
            appended = self.store.append(sent_message(connection, header, place, body, header.flag, sys_flag), self.clock())
        except (IllegalMessage, StoreUnwritable) as error:
            logger.warning("reply from %s not stored: %s", connection.peer, error)
            return not_stored
        count(self.statistics.traffic.normal, place.topic, 1, appended.end_position - appended.commit_log_offset)
        self.statistics.messages_put += 1
        message_id = offset_message_id(self.identity.store_host, appended.commit_log_offset)
        return _Place(message_id, place.queue_id, appended.queue_offset, self.group_commit.wait(appended.end_position))

    async def _answer(self, connection: Connection, reply_to: ReplyTo | None, push: _Push, place: _Place) -> None:
        try:
            is_pushed = await push.succeeds()
            stored = await _once_durable(place)
        finally:
            self._in_progress.end(connection)
        if reply_to is None:
            return
        header = SendMessageResponseHeader(
            msg_id=stored.message_id,
            queue_id=stored.queue_id,
            queue_offset=stored.queue_offset,
            region_id=self.region_id,
            is_trace_on=self.is_trace_on,
        )
        code, remark = (ResponseCode.SUCCESS, None) if is_pushed else (ResponseCode.SYSTEM_ERROR, push.remark)
        connection.send(encode_response(reply_to, code, header, remark=remark))


async def _once_durable(place: _Place) -> _Place:
    if place.durable is None:
        return place
    try:
        await place.durable
    except StoreUnwritable:
        return _Place(NOT_STORED_ID, place.queue_id, 0)
    return place
