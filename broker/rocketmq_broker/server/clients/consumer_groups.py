"""Which consumers are online, by group, and what they subscribe to (RocketMQ's ConsumerManager and ConsumerGroupInfo)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from rocketmq_broker.protocol.bodies.heartbeat import ConsumeFromWhere, ConsumerData, ConsumeType, MessageModel, SubscriptionData
from rocketmq_broker.remoting.connection import Connection
from rocketmq_broker.server.clients.client_channel import ClientChannel
from rocketmq_broker.server.clients.memberships import Memberships

ConsumersChanged = Callable[[str, list[Connection]], None]
"""Told the group and the connections of its members, each of which must divide the queues anew."""


@dataclass(slots=True)
class ConsumerGroup:
    """One group: how it consumes, its members, and its subscriptions by topic."""

    name: str
    consume_type: ConsumeType | None
    message_model: MessageModel | None
    consume_from_where: ConsumeFromWhere | None
    subscriptions: dict[str, SubscriptionData] = field(default_factory=dict)
    channels: dict[Connection, ClientChannel] = field(default_factory=dict)

    def client_ids(self) -> list[str]:
        """The ids of the members."""
        return [channel.client_id for channel in self.channels.values()]

    def channel_of(self, client_id: str) -> ClientChannel | None:
        """The member with this id."""
        return next((channel for channel in self.channels.values() if channel.client_id == client_id), None)

    def subscribe(self, subscriptions: Iterable[SubscriptionData]) -> bool:
        """Takes over a member's subscriptions; says whether topics came or went.

        Of two subscriptions of one topic the one with the higher version counts.
        """
        heard = {subscription.topic: subscription for subscription in subscriptions}
        changed = heard.keys() != self.subscriptions.keys()
        for topic, known in self.subscriptions.items():
            if topic in heard and heard[topic].sub_version <= known.sub_version:
                heard[topic] = known
        self.subscriptions = heard
        return changed


class ConsumerGroups:
    """Groups of consumers as their heartbeats tell. A group without a member is forgotten."""

    def __init__(self, on_change: ConsumersChanged) -> None:
        self._groups: dict[str, ConsumerGroup] = {}
        self.memberships = Memberships()
        """To be read only."""
        self._on_change = on_change

    def register(self, data: ConsumerData, channel: ClientChannel, *, notify: bool = True) -> bool:
        """A member's heartbeat; says whether it changed the group. If so, its members are told, unless `notify` is off."""
        group = self._groups.get(data.group_name)
        if group is None:
            group = ConsumerGroup(data.group_name, data.consume_type, data.message_model, data.consume_from_where)
            self._groups[data.group_name] = group
        group.consume_type, group.message_model = data.consume_type, data.message_model
        group.consume_from_where = data.consume_from_where
        is_new = channel.connection not in group.channels
        group.channels[channel.connection] = channel
        if is_new:
            self.memberships.add(channel.connection, group.name)
        changed = group.subscribe(data.subscription_data_set) or is_new
        if changed and notify:
            self._on_change(group.name, list(group.channels))
        return changed

    def unregister(self, group_name: str, connection: Connection, *, notify: bool = True) -> None:
        """A member says goodbye, or its connection is closed; those that stay are told, unless `notify` is off."""
        group = self._groups.get(group_name)
        if group is None or group.channels.pop(connection, None) is None:
            return
        self.memberships.remove(connection, group_name)
        if not group.channels:
            del self._groups[group_name]
        elif notify:
            self._on_change(group_name, list(group.channels))

    def forget(self, connection: Connection) -> None:
        """The connection is closed: it is no member of any group any more."""
        for group_name in list(self.memberships.of(connection)):
            self.unregister(group_name, connection)

    def expired(self, now_ms: int) -> list[Connection]:
        """Connections whose heartbeats stopped."""
        return [
            channel.connection
            for group in self._groups.values()
            for channel in group.channels.values()
            if channel.is_expired(now_ms)
        ]

    def find(self, group_name: str) -> ConsumerGroup | None:
        """The group, if a member of it is online."""
        return self._groups.get(group_name)

    def all_groups(self) -> list[ConsumerGroup]:
        """The groups online."""
        return list(self._groups.values())

    def subscribers(self, topic: str) -> list[str]:
        """The groups online that subscribe to the topic."""
        return [name for name, group in self._groups.items() if topic in group.subscriptions]
