"""Handles admin requests about groups (part of RocketMQ's AdminBrokerProcessor)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from rocketmq_broker.message.topics import MAX_QUEUES
from rocketmq_broker.protocol.bodies.group import (
    ClientConnection,
    ConsumerConnection,
    ProducerConnection,
    ProducerInfo,
    ProducerTableInfo,
)
from rocketmq_broker.protocol.bodies.topic import SubscriptionGroupBody
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_response
from rocketmq_broker.protocol.headers.group import (
    DeleteSubscriptionGroupRequestHeader,
    GetConsumerConnectionListRequestHeader,
    GetProducerConnectionListRequestHeader,
)
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Handler, RequestRefused, Steps
from rocketmq_broker.remoting.long_tables import table_in_steps
from rocketmq_broker.server.clients.client_channel import ClientChannel
from rocketmq_broker.server.clients.consumer_groups import ConsumerGroups
from rocketmq_broker.server.clients.producer_groups import ProducerGroups
from rocketmq_broker.server.topics.config_bodies import groups_body
from rocketmq_broker.server.topics.subscription_group_table import SubscriptionGroupTable
from rocketmq_broker.store import ConsumerOffsets


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAdminProcessor:
    """Creates, lists and deletes consumer groups, and lists the members of groups.

    `date_of` converts a monotonic time to milliseconds since the epoch (BrokerClock).
    """

    subscription_groups: SubscriptionGroupTable
    consumer_groups: ConsumerGroups
    producer_groups: ProducerGroups
    offsets: ConsumerOffsets
    date_of: Callable[[int], int]

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Returns the handlers of requests about subscription groups and their members."""
        return {
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: self.update_group,
            RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: self.get_all_groups,
            RequestCode.DELETE_SUBSCRIPTIONGROUP: self.delete_group,
            RequestCode.GET_CONSUMER_CONNECTION_LIST: self.get_consumers,
            RequestCode.GET_PRODUCER_CONNECTION_LIST: self.get_producers,
            RequestCode.GET_ALL_PRODUCER_INFO: self.get_all_producers,
        }

    def update_group(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Creates or changes a consumer group."""
        config = SubscriptionGroupBody.decode(command.body)
        if not 0 <= config.retry_queue_nums <= MAX_QUEUES:
            remark = f"the number of retry queues must be between 0 and {MAX_QUEUES}, not {config.retry_queue_nums}"
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, remark)
        self.subscription_groups.update(config)
        return encode_response(command, ResponseCode.SUCCESS)

    def get_all_groups(self, connection: Connection, command: RemotingCommand) -> Steps:
        """Responds with all consumer groups and their settings."""
        groups = self.subscription_groups.groups
        body = yield from table_in_steps(
            ((config.group_name, config) for config in groups),
            lambda table: groups_body(table.values(), groups.data_version).encode(),
            at_once=100,
            advice="there are too many groups",
        )
        return encode_response(command, ResponseCode.SUCCESS, body=body)

    def delete_group(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Deletes a consumer group, and optionally its offsets."""
        header = command.decode_header(DeleteSubscriptionGroupRequestHeader)
        self.subscription_groups.delete(header.group_name)
        if header.remove_offset:
            self.offsets.remove_group(header.group_name)
        return encode_response(command, ResponseCode.SUCCESS)

    def get_consumers(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with the members of a consumer group and its subscriptions."""
        header = command.decode_header(GetConsumerConnectionListRequestHeader)
        group = self.consumer_groups.find(header.consumer_group)
        if group is None:
            remark = f"the consumer group[{header.consumer_group}] not online"
            raise RequestRefused(ResponseCode.CONSUMER_NOT_ONLINE, remark)
        body = ConsumerConnection(
            connection_set=_connections(group.channels.values()),
            subscription_table=group.subscriptions,
            consume_type=group.consume_type,
            message_model=group.message_model,
            consume_from_where=group.consume_from_where,
            disagreement=group.disagreement(),
        )
        return encode_response(command, ResponseCode.SUCCESS, body=body.encode())

    def get_producers(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with the members of a producer group."""
        header = command.decode_header(GetProducerConnectionListRequestHeader)
        channels = self.producer_groups.channels(header.producer_group)
        if channels is None:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"the producer group[{header.producer_group}] not exist")
        body = ProducerConnection(connection_set=_connections(channels))
        return encode_response(command, ResponseCode.SUCCESS, body=body.encode())

    def get_all_producers(self, connection: Connection, command: RemotingCommand) -> Steps:
        """Responds with all producers, grouped by producer group."""
        groups = self.producer_groups.group_names()
        members = ((name, self.producer_groups.channels(name) or []) for name in groups)
        body = yield from table_in_steps(
            ((name, [self._producer(channel) for channel in channels]) for name, channels in members),
            lambda table: ProducerTableInfo(data=table).encode(),
            at_once=20,
            advice="request one group at a time",
        )
        return encode_response(command, ResponseCode.SUCCESS, body=body)

    def _producer(self, channel: ClientChannel) -> ProducerInfo:
        return ProducerInfo(
            client_id=channel.client_id,
            remote_ip=f"/{channel.connection.peer}",
            language=channel.language,
            version=channel.version,
            last_update_timestamp=self.date_of(channel.last_heartbeat_ms),
        )


def _connections(channels: Iterable[ClientChannel]) -> list[ClientConnection]:
    return [
        ClientConnection(
            client_id=channel.client_id,
            client_addr=channel.connection.peer,
            language=channel.language,
            version=channel.version,
        )
        for channel in channels
    ]
