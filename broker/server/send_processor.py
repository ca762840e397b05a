"""Messages from producers: single, batched and one-way (RocketMQ's SendMessageProcessor)."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from broker.message import properties as props
from broker.message import sysflag, topics
from broker.message.errors import IllegalMessage
from broker.message.ids import offset_message_id
from broker.protocol.codes import RequestCode, ResponseCode
from broker.protocol.command import RemotingCommand, encode_response
from broker.protocol.headers import SendMessageRequestHeader, SendMessageRequestHeaderV2, SendMessageResponseHeader
from broker.remoting.connection import Connection
from broker.remoting.dispatcher import Handler, RequestRefused
from broker.server.batch_body import split_batch
from broker.server.delay_levels import Place, delay_level, waiting_place
from broker.server.group_commit import GroupCommit
from broker.server.identity import BrokerIdentity
from broker.server.statistics import BrokerStatistics
from broker.server.subscription_group_table import SubscriptionGroupTable
from broker.server.topic_table import TopicTable
from broker.store import Appended, MessageStore, TopicConfig

SendHeader = SendMessageRequestHeader | SendMessageRequestHeaderV2

_HOST_V6_LENGTH: Final = 20
_WAIT: Final = props.WAIT_STORE_MSG_OK.encode() + b"\x01"
_CLUSTER: Final = props.CLUSTER.encode() + b"\x01"
_TRANSACTION: Final = props.TRANSACTION_PREPARED.encode() + b"\x01"
_DEAD_LETTERS: Final = topics.DEAD_LETTER_PREFIX.encode()
_DELAY: Final = props.DELAY_TIME_LEVEL.encode() + b"\x01"


class HalfMessages(Protocol):
    """Where messages go that begin a transaction."""

    def append(
        self,
        connection: Connection,
        *,
        producer_group: str,
        topic: bytes,
        queue_id: int,
        body: bytes,
        properties: bytes,
        flag: int,
        sys_flag: int,
        born_timestamp: int,
        reconsume_times: int,
        now_ms: int,
    ) -> Appended:
        """Appends the half message to the store. Raises RequestRefused or IllegalMessage, then nothing is appended."""


class SendProcessor:
    """Checks a message, appends it, and answers once it is as durable as the broker's settings promise."""

    def __init__(
        self,
        *,
        identity: BrokerIdentity,
        store: MessageStore,
        group_commit: GroupCommit,
        topic_table: TopicTable,
        subscription_groups: SubscriptionGroupTable,
        half_messages: HalfMessages,
        region_id: str,
        is_trace_on: bool,
        statistics: BrokerStatistics,
        highest_delay_level: int,
        clock: Callable[[], int],
    ) -> None:
        self._store = store
        self._group_commit = group_commit
        self._topics = topic_table
        self._groups = subscription_groups
        self._half_messages = half_messages
        self._region_id = region_id
        self._is_trace_on = is_trace_on
        self._statistics = statistics
        self._highest_delay_level = highest_delay_level
        self._clock = clock
        self._store_host = identity.store_host
        self._store_host_flag = sysflag.STORE_HOST_V6 if len(identity.store_host) == _HOST_V6_LENGTH else 0
        self._cluster = identity.cluster
        self._cluster_property = _CLUSTER + identity.cluster.encode()

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Request code -> method."""
        return {
            RequestCode.SEND_MESSAGE: self.send,
            RequestCode.SEND_MESSAGE_V2: self.send_v2,
            RequestCode.SEND_BATCH_MESSAGE: self.send_batch,
        }

    def send_v2(self, connection: Connection, command: RemotingCommand) -> bytes | None:
        """A message whose header has short names."""
        header = command.decode_header(SendMessageRequestHeaderV2)
        return (self._send_batch if header.batch else self._send)(connection, command, header)

    def send(self, connection: Connection, command: RemotingCommand) -> bytes | None:
        """A message whose header has long names."""
        header = command.decode_header(SendMessageRequestHeader)
        return (self._send_batch if header.batch else self._send)(connection, command, header)

    def send_batch(self, connection: Connection, command: RemotingCommand) -> bytes | None:
        """Several messages in one body."""
        return self._send_batch(connection, command, command.decode_header(SendMessageRequestHeaderV2))

    def _send(self, connection: Connection, command: RemotingCommand, header: SendHeader) -> bytes | None:
        topic, queue_id = self._destination(header)
        encoded = self._properties(header.properties.encode())
        now_ms = self._clock()
        level = delay_level(encoded) if _DELAY in encoded else 0
        # Old clients send a consumer's failed message by themselves, and leave TRAN_MSG in it.
        if _begins_transaction(encoded) and not (header.reconsume_times > 0 and level > 0):
            appended = self._half_messages.append(
                connection,
                producer_group=header.producer_group,
                topic=topic,
                queue_id=queue_id,
                body=command.body,
                properties=encoded,
                flag=header.flag,
                sys_flag=self._sys_flag(connection, header),
                born_timestamp=header.born_timestamp,
                reconsume_times=header.reconsume_times,
                now_ms=now_ms,
            )
        else:
            place = Place(topic, queue_id, encoded)
            if level > 0 and not topic.startswith(_DEAD_LETTERS):
                place = waiting_place(place, level, self._highest_delay_level)
            appended = self._append(connection, header, place, command.body, header.flag, now_ms)
        self._statistics.messages_put += 1
        self._group_commit.appended()
        if not command.is_oneway:
            frame = self._answer(command, self._message_id(appended), queue_id, appended.queue_offset)
            self._group_commit.after_durable(appended.end_position, connection, frame)
        return None

    def _send_batch(self, connection: Connection, command: RemotingCommand, header: SendHeader) -> bytes | None:
        topic, queue_id = self._destination(header)
        if len(command.body) > self._store.config.max_message_size:
            raise IllegalMessage(f"the batch has {len(command.body)} bytes; {self._store.config.max_message_size} are allowed")
        messages = [(flag, body, self._properties(encoded)) for flag, body, encoded in split_batch(command.body)]
        for _, _, encoded in messages:
            _refuse_in_batch(topic, encoded)
        now_ms = self._clock()
        all_appended = [
            self._append(connection, header, Place(topic, queue_id, encoded), body, flag, now_ms)
            for flag, body, encoded in messages
        ]
        self._statistics.messages_put += len(messages)
        self._group_commit.appended()
        if not command.is_oneway:
            message_ids = ",".join(map(self._message_id, all_appended))
            frame = self._answer(command, message_ids, queue_id, all_appended[0].queue_offset)
            self._group_commit.after_durable(all_appended[-1].end_position, connection, frame)
        return None

    def _append(self, connection: Connection, header: SendHeader, place: Place, body: bytes, flag: int, now_ms: int) -> Appended:
        if header.sys_flag & sysflag.TRANSACTION_PREPARED:
            raise IllegalMessage("the sysFlag says that the message begins a transaction; its property TRAN_MSG does not")
        return self._store.append(
            topic=place.topic,
            queue_id=place.queue_id,
            body=body,
            properties=place.properties,
            flag=flag,
            sys_flag=self._sys_flag(connection, header),
            born_timestamp=header.born_timestamp,
            born_host=connection.born_host,
            store_timestamp=now_ms,
            reconsume_times=header.reconsume_times,
        )

    def _sys_flag(self, connection: Connection, header: SendHeader) -> int:
        """The message's flag, with the bits that tell which addresses are IPv6 ones."""
        if len(connection.born_host) == _HOST_V6_LENGTH:
            return header.sys_flag | sysflag.BORN_HOST_V6 | self._store_host_flag
        return header.sys_flag & ~sysflag.BORN_HOST_V6 | self._store_host_flag

    def _message_id(self, appended: Appended) -> str:
        return offset_message_id(self._store_host, appended.commit_log_offset)

    def _answer(self, command: RemotingCommand, msg_id: str, queue_id: int, queue_offset: int) -> bytes:
        header = SendMessageResponseHeader(
            msg_id=msg_id,
            queue_id=queue_id,
            queue_offset=queue_offset,
            region_id=self._region_id,
            is_trace_on=self._is_trace_on,
        )
        return encode_response(command, ResponseCode.SUCCESS, header)

    def _destination(self, header: SendHeader) -> tuple[bytes, int]:
        """The topic, made if need be, and the queue. Raises RequestRefused."""
        config = self._topics.for_sending(header.topic, header.default_topic, header.default_topic_queue_nums, header.unit_mode)
        queue_id = header.queue_id
        if queue_id >= config.read_queue_nums and queue_id >= config.write_queue_nums:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"request queueId[{queue_id}] is illegal, {config}")
        if header.topic.startswith(topics.RETRY_PREFIX) and self._is_given_up(header):
            group = header.topic.removeprefix(topics.RETRY_PREFIX)
            return self._topics.dead_letter_topic(group).topic_name.encode(), 0
        if queue_id < 0:
            queue_id = _any_queue(config)
        return header.topic.encode(), queue_id

    def _is_given_up(self, header: SendHeader) -> bool:
        """Whether a retried message was tried as often as its group allows."""
        group = self._groups.for_consuming(header.topic.removeprefix(topics.RETRY_PREFIX))
        most = header.max_reconsume_times if header.max_reconsume_times is not None else group.retry_max_times
        return header.reconsume_times >= most

    def _properties(self, encoded: bytes) -> bytes:
        """What is stored: WAIT says nothing to a reader, and the cluster is added."""
        if _WAIT in encoded:
            encoded = props.remove(encoded, (props.WAIT_STORE_MSG_OK,))
        if _CLUSTER in encoded:
            return props.put(encoded, props.CLUSTER, self._cluster)
        if not encoded or encoded.endswith(b"\x02"):
            return encoded + self._cluster_property
        return encoded + b"\x02" + self._cluster_property


def _any_queue(config: TopicConfig) -> int:
    if config.write_queue_nums <= 0:
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"the topic has no queue to write to, {config}")
    return random.randrange(config.write_queue_nums)


def _begins_transaction(encoded: bytes) -> bool:
    return _TRANSACTION in encoded and (props.find(encoded, props.TRANSACTION_PREPARED) or "").lower() == "true"


def _refuse_in_batch(topic: bytes, encoded: bytes) -> None:
    if topic.startswith(topics.RETRY_PREFIX.encode()):
        raise IllegalMessage("a retry topic takes no batches")
    if _DELAY in encoded and delay_level(encoded) > 0:
        raise IllegalMessage("a delayed message cannot be part of a batch")
    if _begins_transaction(encoded):
        raise IllegalMessage("a transactional message cannot be part of a batch")
    if len(encoded) > props.MAX_PROPERTIES_LENGTH:
        raise IllegalMessage(f"the message properties have {len(encoded)} bytes; {props.MAX_PROPERTIES_LENGTH} are allowed")
