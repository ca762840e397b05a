"""Creates, lists and deletes topics for clients and operators (part of RocketMQ's AdminBrokerProcessor)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from rocketmq_broker.message import MessageQueue
from rocketmq_broker.message.configs import TopicConfig
from rocketmq_broker.message.topics import MAX_QUEUES
from rocketmq_broker.protocol.bodies.group import GroupList
from rocketmq_broker.protocol.bodies.topic import TopicList, TopicOffset, TopicStatsTable
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, ReplyTo, encode_response
from rocketmq_broker.protocol.headers.group import QueryTopicConsumeByWhoRequestHeader
from rocketmq_broker.protocol.headers.topic import (
    CreateTopicRequestHeader,
    DeleteTopicRequestHeader,
    GetTopicConfigRequestHeader,
    GetTopicStatsInfoRequestHeader,
)
from rocketmq_broker.protocol.queue_table import QueueTable
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Handler, RequestRefused, Steps
from rocketmq_broker.remoting.long_tables import table_in_steps
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.server.clients.consumer_groups import ConsumerGroups
from rocketmq_broker.server.topics.config_bodies import topic_answer, topics_body
from rocketmq_broker.server.topics.identity import BrokerIdentity
from rocketmq_broker.server.topics.registration import Registration
from rocketmq_broker.server.topics.topic_attributes import IllegalAttributes, changed_attributes
from rocketmq_broker.server.topics.topic_deletion import TopicDeletion
from rocketmq_broker.server.topics.topic_table import TopicTable
from rocketmq_broker.store import ConsumerOffsets, MessageStore, StoreUnwritable

QUEUES_AT_ONCE: Final = 50
"""The number of a topic's queues that one step handles. A step of this size takes about a millisecond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicAdminProcessor:
    """Creates, changes, lists and deletes topics.

    A new topic is on disk and registered with the name servers before the response is sent.
    """

    identity: BrokerIdentity
    store: MessageStore
    topic_table: TopicTable
    consumer_groups: ConsumerGroups
    offsets: ConsumerOffsets
    registration: Registration
    deletion: TopicDeletion
    tasks: Tasks

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Returns the handlers of requests about topics."""
        return {
            RequestCode.UPDATE_AND_CREATE_TOPIC: self.update_topic,
            RequestCode.DELETE_TOPIC_IN_BROKER: self.delete_topic,
            RequestCode.GET_ALL_TOPIC_CONFIG: self.get_all_topics,
            RequestCode.GET_TOPIC_CONFIG: self.get_topic,
            RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: self.get_system_topics,
            RequestCode.GET_TOPIC_STATS_INFO: self.get_topic_stats,
            RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: self.get_groups_of_topic,
            RequestCode.CLEAN_UNUSED_TOPIC: self.clean_unused_topics,
        }

    def update_topic(self, connection: Connection, command: RemotingCommand) -> None:
        """Creates or changes a topic."""
        header = command.decode_header(CreateTopicRequestHeader)
        for count in (header.read_queue_nums, header.write_queue_nums):
            if not 0 <= count <= MAX_QUEUES:
                remark = f"the number of queues must be between 0 and {MAX_QUEUES}, not {count}"
                raise RequestRefused(ResponseCode.SYSTEM_ERROR, remark)
        self.topic_table.update(
            TopicConfig(
                header.topic,
                header.read_queue_nums,
                header.write_queue_nums,
                header.perm,
                header.topic_filter_type,
                header.topic_sys_flag or 0,
                header.order,
                self._attributes(header),
            )
        )
        reply_to = ReplyTo(command.opaque, command.serialize_type)
        self.tasks.start("respond when a topic is registered", self._answer_when_registered(connection, reply_to))

    def delete_topic(self, connection: Connection, command: RemotingCommand) -> None:
        """Deletes a topic, its queues and its consumer offsets."""
        header = command.decode_header(DeleteTopicRequestHeader)
        self.topic_table.delete(header.topic)
        self._answer_when_deleted(connection, command, [header.topic.encode()])

    def get_all_topics(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with all topics and their settings."""
        return encode_response(command, ResponseCode.SUCCESS, body=topics_body(self.topic_table.configs).encode())

    def get_topic(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with one topic and its settings."""
        config = self.topic_table.existing(command.decode_header(GetTopicConfigRequestHeader).topic)
        return encode_response(command, ResponseCode.SUCCESS, body=topic_answer(config).encode())

    def get_system_topics(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with the broker's system topics."""
        body = TopicList(topic_list=sorted(self.topic_table.system_topics))
        return encode_response(command, ResponseCode.SUCCESS, body=body.encode())

    def get_topic_stats(self, connection: Connection, command: RemotingCommand) -> Steps:
        """Responds with the first and last offsets of a topic's queues."""
        header = command.decode_header(GetTopicStatsInfoRequestHeader)
        config = self.topic_table.get(header.topic)
        if config is None:
            raise RequestRefused(ResponseCode.TOPIC_NOT_EXIST, f"topic[{header.topic}] not exist")
        topic = header.topic.encode()
        body = yield from table_in_steps(
            (
                (MessageQueue(header.topic, self.identity.name, queue_id), self._extent(topic, queue_id))
                for queue_id in range(config.write_queue_nums)
            ),
            lambda part: TopicStatsTable(offset_table=QueueTable(part)).encode(),
            at_once=QUEUES_AT_ONCE,
            advice="reduce the number of the topic's queues",
        )
        return encode_response(command, ResponseCode.SUCCESS, body=body)

    def get_groups_of_topic(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with the groups that subscribe to a topic or have offsets in it."""
        header = command.decode_header(QueryTopicConsumeByWhoRequestHeader)
        groups = {*self.consumer_groups.subscribers(header.topic), *self.offsets.groups_of(header.topic)}
        return encode_response(command, ResponseCode.SUCCESS, body=GroupList(group_list=sorted(groups)).encode())

    def clean_unused_topics(self, connection: Connection, command: RemotingCommand) -> None:
        """Deletes the queues of topics that no longer exist."""
        self._answer_when_deleted(
            connection, command, [topic for topic in self.store.queues() if self._is_unused(topic.decode())]
        )

    def _is_unused(self, topic: str) -> bool:
        return self.topic_table.get(topic) is None and not self.topic_table.is_system_topic(topic)

    def _answer_when_deleted(self, connection: Connection, command: RemotingCommand, topics: Sequence[bytes]) -> None:
        reply_to = ReplyTo(command.opaque, command.serialize_type)
        self.tasks.start("respond when topics are deleted", self._delete(connection, reply_to, topics))

    async def _delete(self, connection: Connection, reply_to: ReplyTo, topics: Sequence[bytes]) -> None:
        try:
            for topic in topics:
                await self.deletion.delete(topic)
        except (OSError, StoreUnwritable) as error:
            connection.send(encode_response(reply_to, ResponseCode.SYSTEM_ERROR, remark=f"some files were not deleted: {error}"))
        else:
            connection.send(encode_response(reply_to, ResponseCode.SUCCESS))

    def _attributes(self, header: CreateTopicRequestHeader) -> dict[str, str] | msgspec.UnsetType:
        """Returns the topic's attributes after the change. Raises RequestRefused."""
        config = self.topic_table.get(header.topic)
        current = (config.attributes or {}) if config is not None else {}
        try:
            attributes = changed_attributes(current, header.attributes or "", is_new=config is None)
        except IllegalAttributes as error:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, str(error)) from None
        return dict(sorted(attributes.items())) or msgspec.UNSET

    def _extent(self, topic: bytes, queue_id: int) -> TopicOffset:
        max_offset = self.store.max_offset(topic, queue_id)
        last = self.store.store_time(topic, queue_id, max_offset - 1) if max_offset > 0 else 0
        return TopicOffset(
            min_offset=self.store.min_offset(topic, queue_id), max_offset=max_offset, last_update_timestamp=max(last, 0)
        )

    async def _answer_when_registered(self, connection: Connection, reply_to: ReplyTo) -> None:
        await self.registration.registered()
        connection.send(encode_response(reply_to, ResponseCode.SUCCESS))
