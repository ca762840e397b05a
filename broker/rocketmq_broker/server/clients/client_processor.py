"""Handles heartbeats and unregistrations of clients (RocketMQ's ClientManageProcessor)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from rocketmq_broker.message.steps import finish
from rocketmq_broker.protocol.bodies.group import CheckClientRequestBody, GetConsumerListByGroupResponseBody
from rocketmq_broker.protocol.bodies.heartbeat import ConsumerData, HeartbeatData
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_response
from rocketmq_broker.protocol.headers.group import GetConsumerListByGroupRequestHeader, UnregisterClientRequestHeader
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Answer, Handler, RequestRefused, Steps
from rocketmq_broker.server.clients.client_channel import ClientChannel
from rocketmq_broker.server.clients.consumer_groups import ConsumerGroups
from rocketmq_broker.server.clients.message_filters import MessageFilters
from rocketmq_broker.server.clients.producer_groups import ProducerGroups
from rocketmq_broker.server.shares import is_full
from rocketmq_broker.server.topics.names import refuse_as_consumer, refuse_illegal_producer_group
from rocketmq_broker.server.topics.subscription_group_table import SubscriptionGroupTable
from rocketmq_broker.server.topics.topic_table import TopicTable

MAX_HEARTBEAT_LENGTH: Final = 1024 * 1024
"""The maximum length of a heartbeat in bytes: enough for 200 consumer groups with 30 subscriptions each.

The broker decodes a heartbeat of this length in about 10 ms.
"""
MAX_GROUPS_OF_A_CONNECTION: Final = 15_000
"""The maximum number of groups of one connection.

A client has a few groups, and a proxy has a few hundred. Removing the maximum number takes about 20 ms when the connection
closes.
"""
MAX_MEMBERSHIPS: Final = 200_000
"""The maximum number of memberships of all connections together. A membership is one connection in one group.

The broker checks each membership for an expired heartbeat every 10 s.
"""


MAX_REMARKS: Final = 3
"""The maximum number of groups with differing subscriptions that the response to one heartbeat lists."""
GROUPS_AT_ONCE: Final = 100
"""The number of groups of one heartbeat that are registered in one turn of the event loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProcessor:
    """Registers producers and consumers in their groups when they send heartbeats."""

    producer_groups: ProducerGroups
    consumer_groups: ConsumerGroups
    subscription_groups: SubscriptionGroupTable
    topic_table: TopicTable
    message_filters: MessageFilters
    clock: Callable[[], int]

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Returns the handlers of heartbeats, unregistrations, and queries of a group's members."""
        return {
            RequestCode.HEART_BEAT: self.heartbeat,
            RequestCode.UNREGISTER_CLIENT: self.unregister_client,
            RequestCode.CHECK_CLIENT_CONFIG: self.check_client_config,
            RequestCode.GET_CONSUMER_LIST_BY_GROUP: self.get_consumer_list,
        }

    def heartbeat(self, connection: Connection, command: RemotingCommand) -> Answer | Steps:
        """Registers a client in its groups. Creates the retry topic of each consumer group.

        If a group name is illegal, raises RequestRefused after the client's other groups are registered.
        """
        refuse_long_heartbeat(len(command.body))
        data = HeartbeatData.decode(command.body)
        refuse_too_many_groups(connection, data, self.producer_groups, self.consumer_groups)
        channel = ClientChannel(connection, data.client_id, command.language_code.name, command.version, self.clock())
        steps = self._take(data, channel, command)
        return finish(steps) if len(data.consumer_data_set) + len(data.producer_data_set) <= GROUPS_AT_ONCE else steps

    def _take(self, data: HeartbeatData, channel: ClientChannel, command: RemotingCommand) -> Steps:
        refusals: list[RequestRefused] = []
        for number, consumer in enumerate(data.consumer_data_set):
            try:
                self._take_consumer(consumer, channel)
            except RequestRefused as refusal:
                refusals.append(refusal)
            if number % GROUPS_AT_ONCE == 0:
                yield
        for number, producer in enumerate(data.producer_data_set):
            try:
                refuse_illegal_producer_group(producer.group_name)
                self.producer_groups.register(producer.group_name, channel)
            except RequestRefused as refusal:
                refusals.append(refusal)
            if number % GROUPS_AT_ONCE == 0:
                yield
        if refusals:
            raise refusals[0]
        # Apache's clients ignore the remark of a heartbeat's response; this project's client logs it.
        found = (self.consumer_groups.disagreement(consumer.group_name) for consumer in data.consumer_data_set)
        return encode_response(command, ResponseCode.SUCCESS, remark="; ".join(islice(filter(None, found), MAX_REMARKS)) or None)

    def _take_consumer(self, consumer: ConsumerData, channel: ClientChannel) -> None:
        refuse_as_consumer(consumer.group_name)
        settings = self.subscription_groups.find(consumer.group_name)
        if settings is not None:
            self.topic_table.retry_topic(consumer.group_name, settings.retry_queue_nums, unit_mode=consumer.unit_mode)
        notify = settings is None or settings.notify_consumer_ids_changed_enable
        self.consumer_groups.register(consumer, channel, notify=notify)

    def unregister_client(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Removes a client from its groups."""
        header = command.decode_header(UnregisterClientRequestHeader)
        if header.producer_group:
            self.producer_groups.unregister(header.producer_group, connection)
        if header.consumer_group:
            settings = self.subscription_groups.find(header.consumer_group)
            notify = settings is None or settings.notify_consumer_ids_changed_enable
            self.consumer_groups.unregister(header.consumer_group, connection, notify=notify)
        return encode_response(command, ResponseCode.SUCCESS)

    def check_client_config(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with SUCCESS if the broker supports a consumer's filter. Raises RequestRefused otherwise.

        Consumers with an SQL92 filter send this request when they start.
        """
        self.message_filters.check(CheckClientRequestBody.decode(command.body).subscription_data)
        return encode_response(command, ResponseCode.SUCCESS)

    def get_consumer_list(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with the client ids of a group's members.

        Each member uses this list to divide the queues, so that all members compute the same assignment.
        """
        header = command.decode_header(GetConsumerListByGroupRequestHeader)
        group = self.consumer_groups.find(header.consumer_group)
        if group is None:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"no consumer for this group, {header.consumer_group}")
        body = GetConsumerListByGroupResponseBody(consumer_id_list=group.client_ids())
        return encode_response(command, ResponseCode.SUCCESS, body=body.encode())

    def close_expired(self) -> None:
        """Closes the connections of clients that have stopped sending heartbeats. Call it every few seconds."""
        now_ms = self.clock()
        for connection in dict.fromkeys((*self.producer_groups.expired(now_ms), *self.consumer_groups.expired(now_ms))):
            connection.close()


def refuse_long_heartbeat(length: int) -> None:
    """Raises RequestRefused if the heartbeat is longer than MAX_HEARTBEAT_LENGTH."""
    if length > MAX_HEARTBEAT_LENGTH:
        remark = f"heartbeat too long: {length} bytes, limit {MAX_HEARTBEAT_LENGTH}; use several clients for so many groups"
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, remark)


def refuse_too_many_groups(
    connection: Connection, data: HeartbeatData, producers: ProducerGroups, consumers: ConsumerGroups
) -> None:
    """Raises RequestRefused if the heartbeat's new groups exceed the limit of the connection or of all connections."""
    known_producers, known_consumers = producers.memberships.of(connection), consumers.memberships.of(connection)
    known = len(known_producers) + len(known_consumers)
    new = len({producer.group_name for producer in data.producer_data_set} - known_producers)
    new += len({consumer.group_name for consumer in data.consumer_data_set} - known_consumers)
    if new and known + new > MAX_GROUPS_OF_A_CONNECTION:
        remark = f"too many groups on one connection: {known + new}, limit {MAX_GROUPS_OF_A_CONNECTION}; use several clients"
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, remark)
    if new and is_full(producers.memberships.count + consumers.memberships.count + new - 1, MAX_MEMBERSHIPS, known + new - 1):
        remark = f"too many group memberships of all clients: limit {MAX_MEMBERSHIPS}; no client can join another group"
        raise RequestRefused(ResponseCode.SYSTEM_BUSY, remark)
