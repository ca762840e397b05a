"""Handles admin requests that the broker forwards to consumers (RocketMQ's Broker2Client)."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Final

from rocketmq_broker.message import MessageQueue
from rocketmq_broker.message.ids import parse_offset_message_id
from rocketmq_broker.message.record import decode_record
from rocketmq_broker.protocol.bodies.group import GetConsumerStatusBody, MessageQueueForC, ResetOffsetBody, ResetOffsetBodyForC
from rocketmq_broker.protocol.codes import LanguageCode, RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, ReplyTo, encode_response
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.errors import ProtocolError
from rocketmq_broker.protocol.headers.group import (
    ConsumeMessageDirectlyResultRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    GetConsumerStatusRequestHeader,
    ResetOffsetRequestHeader,
)
from rocketmq_broker.protocol.queue_table import QueueTable
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Handler, RequestRefused, Steps
from rocketmq_broker.remoting.errors import RemotingError, RemotingTimeout
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.server.clients.client_channel import ClientChannel
from rocketmq_broker.server.clients.consumer_groups import ConsumerGroup, ConsumerGroups
from rocketmq_broker.server.topics.identity import BrokerIdentity
from rocketmq_broker.server.topics.names import refuse_message_of_the_broker, refuse_offsets
from rocketmq_broker.server.topics.topic_table import TopicTable
from rocketmq_broker.store import ConsumerOffsets, MessageStore, UnreadableRecord

CALL_TIMEOUT_MS: Final = 10_000
STATUS_TIMEOUT_MS: Final = 5_000
TO_THE_END: Final = -1
QUEUES_AT_ONCE: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerCallProcessor:
    """Resets offsets, and forwards requests to consumers.

    Each forwarded request runs as a task, because the consumer's response arrives later.
    """

    identity: BrokerIdentity
    store: MessageStore
    topic_table: TopicTable
    consumer_groups: ConsumerGroups
    offsets: ConsumerOffsets
    tasks: Tasks

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Returns the handlers of requests to consumers."""
        return {
            RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: self.reset_offset,
            RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: self.get_consumer_status,
            RequestCode.GET_CONSUMER_RUNNING_INFO: self.get_running_info,
            RequestCode.CONSUME_MESSAGE_DIRECTLY: self.consume_directly,
        }

    def reset_offset(self, connection: Connection, command: RemotingCommand) -> Steps:
        """Makes the members of a group continue at the offsets of a timestamp. Timestamp -1 means the end of each queue."""
        header = command.decode_header(ResetOffsetRequestHeader)
        refuse_offsets(header.group, header.topic)
        table = yield from self._offsets_after_reset(header)
        group = self.consumer_groups.find(header.group)
        if group is None:
            remark = (
                f"Consumer not online, so can not reset offset, Group: {header.group} "
                f"Topic: {header.topic} Timestamp: {header.timestamp}"
            )
            raise RequestRefused(ResponseCode.CONSUMER_NOT_ONLINE, remark)
        body = ResetOffsetBody(offset_table=table).encode()
        order = _for_c(table) if command.language_code is LanguageCode.CPP else body
        for member in list(group.channels):
            if member.is_writable:
                member.invoke_oneway(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, header, order)
            yield
        return encode_response(command, ResponseCode.SUCCESS, body=body)

    def get_consumer_status(self, connection: Connection, command: RemotingCommand) -> None:
        """Requests the current offsets from the members of a group, and responds with these offsets."""
        header = command.decode_header(GetConsumerStatusRequestHeader)
        group = self.consumer_groups.find(header.group)
        if group is None:
            remark = f"No Any Consumer online in the consumer group: [{header.group}]"
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, remark)
        reply_to = ReplyTo(command.opaque, command.serialize_type)
        self.tasks.start("get consumer status", self._answer_status(connection, reply_to, group, header))

    def get_running_info(self, connection: Connection, command: RemotingCommand) -> None:
        """Requests the running info from one consumer, and responds with this info."""
        header = command.decode_header(GetConsumerRunningInfoRequestHeader)
        channel = self._member(header.consumer_group, header.client_id)
        self._forward(connection, command, channel, header, b"")

    def consume_directly(self, connection: Connection, command: RemotingCommand) -> None:
        """Makes one consumer consume a message now. Responds with the consumer's result."""
        header = command.decode_header(ConsumeMessageDirectlyResultRequestHeader)
        channel = self._member(header.consumer_group, header.client_id or "")
        try:
            record = self.store.read_queued(parse_offset_message_id(header.msg_id or "").commit_log_offset)
        except (ValueError, UnreadableRecord):
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"no message with id {header.msg_id}") from None
        refuse_message_of_the_broker(decode_record(record).topic)
        header.broker_name = self.identity.name
        self._forward(connection, command, channel, header, record)

    def _offsets_after_reset(self, header: ResetOffsetRequestHeader) -> Generator[None, None, QueueTable[int]]:
        config = self.topic_table.get(header.topic)
        if config is None:
            remark = f"[reset-offset] reset offset failed, no topic in this broker. topic={header.topic}"
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, remark)
        topic = header.topic.encode()
        table: QueueTable[int] = QueueTable()
        for queue_id in range(config.write_queue_nums):
            consumed = self.offsets.get(header.group, header.topic, queue_id)
            if consumed is None:
                # RocketMQ's remark, word for word.
                raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"THe consumer group <{header.group}> not exist")
            if header.timestamp == TO_THE_END:
                wanted = self.store.max_offset(topic, queue_id)
            else:
                wanted = max(self.store.offset_by_time(topic, queue_id, header.timestamp), 0)
            queue = MessageQueue(header.topic, self.identity.name, queue_id)
            table[queue] = wanted if header.is_force else min(wanted, consumed)
            if queue_id % QUEUES_AT_ONCE == QUEUES_AT_ONCE - 1:
                yield
        return table

    def _member(self, group_name: str, client_id: str) -> ClientChannel:
        group = self.consumer_groups.find(group_name)
        channel = group.channel_of(client_id) if group is not None else None
        if channel is None:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"The Consumer <{group_name}> <{client_id}> not online")
        return channel

    def _forward(
        self, connection: Connection, command: RemotingCommand, channel: ClientChannel, header: CommandHeader, body: bytes
    ) -> None:
        reply_to = ReplyTo(command.opaque, command.serialize_type)
        work = _answer_as(channel, connection, reply_to, command.code, header, body)
        self.tasks.start("forward a request to a consumer", work)

    async def _answer_status(
        self, connection: Connection, reply_to: ReplyTo, group: ConsumerGroup, header: GetConsumerStatusRequestHeader
    ) -> None:
        body = GetConsumerStatusBody()
        for channel in list(group.channels.values()):
            if header.client_addr and header.client_addr != channel.client_id:
                continue
            try:
                answer = await channel.connection.invoke(
                    RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, header, timeout_ms=STATUS_TIMEOUT_MS
                )
                if answer.code == ResponseCode.SUCCESS and answer.body:
                    body.consumer_table[channel.client_id] = GetConsumerStatusBody.decode(answer.body).message_queue_table
            except (RemotingError, ProtocolError):
                continue
        connection.send(encode_response(reply_to, ResponseCode.SUCCESS, body=body.encode()))


async def _answer_as(
    channel: ClientChannel, connection: Connection, reply_to: ReplyTo, code: int, header: CommandHeader, body: bytes
) -> None:
    """Sends a request to a consumer, and forwards its response to the operator."""
    try:
        answer = await channel.connection.invoke(code, header, body, timeout_ms=CALL_TIMEOUT_MS)
    except RemotingTimeout as error:
        frame = encode_response(reply_to, ResponseCode.CONSUME_MSG_TIMEOUT, remark=f"consumer {channel.client_id}: {error}")
    except RemotingError as error:
        frame = encode_response(reply_to, ResponseCode.SYSTEM_ERROR, remark=f"consumer {channel.client_id}: {error}")
    else:
        frame = encode_response(reply_to, answer.code, body=answer.body, remark=answer.remark)
    connection.send(frame)


def _for_c(table: QueueTable[int]) -> bytes:
    queues = [
        MessageQueueForC(broker_name=queue.broker_name, offset=offset, queue_id=queue.queue_id, topic=queue.topic)
        for queue, offset in table.items()
    ]
    return ResetOffsetBodyForC(offset_table=queues).encode()
