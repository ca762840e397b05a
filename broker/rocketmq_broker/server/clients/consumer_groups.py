"""The consumers online, by group, and their subscriptions (RocketMQ's ConsumerManager and ConsumerGroupInfo)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from rocketmq_broker.protocol.bodies.heartbeat import ConsumeFromWhere, ConsumerData, ConsumeType, MessageModel, SubscriptionData
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.server.clients.client_channel import ClientChannel
from rocketmq_broker.server.clients.memberships import Memberships

ConsumersChanged = Callable[[str, list[Connection]], None]
"""Gets the group and the connections of its members, each of which must divide the queues again."""


@dataclass(slots=True)
class ConsumerGroup:
    """A group: its way of consuming, its members, and its subscriptions by topic."""

    name: str
    consume_type: ConsumeType | None
    message_model: MessageModel | None
    consume_from_where: ConsumeFromWhere | None
    subscriptions: dict[str, SubscriptionData] = field(default_factory=dict)
    channels: dict[Connection, ClientChannel] = field(default_factory=dict)

    def client_ids(self) -> list[str]:
        """Returns the ids of the members."""
        return [channel.client_id for channel in self.channels.values()]

    def channel_of(self, client_id: str) -> ClientChannel | None:
        """Returns the member with this id, or None."""
        return next((channel for channel in self.channels.values() if channel.client_id == client_id), None)

    def subscribe(self, subscriptions: Iterable[SubscriptionData]) -> bool:
        """Takes over a member's subscriptions. Returns whether topics were added or removed.

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
    """The groups of consumers, by their heartbeats. A group without a member is forgotten."""

    def __init__(self, on_change: ConsumersChanged) -> None:
        self._groups: dict[str, ConsumerGroup] = {}
        self.memberships = Memberships()
        """To be read only."""
        self._on_change = on_change

    def register(self, data: ConsumerData, channel: ClientChannel, *, notify: bool = True) -> bool:
        """Registers a member by its heartbeat. Returns whether the group changed, and then notifies it unless `notify` is off."""
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
        """Removes a member that left or lost its connection. Notifies the others, unless `notify` is off."""
        group = self._groups.get(group_name)
        if group is None or group.channels.pop(connection, None) is None:
            return
        self.memberships.remove(connection, group_name)
        if not group.channels:
            del self._groups[group_name]
        elif notify:
            self._on_change(group_name, list(group.channels))

    def forget(self, connection: Connection) -> None:
        """Removes a closed connection from all groups."""
        for group_name in list(self.memberships.of(connection)):
            self.unregister(group_name, connection)

    def expired(self, now_ms: int) -> list[Connection]:
        """Returns the connections whose heartbeats stopped."""
        return [
            channel.connection
            for group in self._groups.values()
            for channel in group.channels.values()
            if channel.is_expired(now_ms)
        ]

    def find(self, group_name: str) -> ConsumerGroup | None:
        """Returns the group if a member of it is online, else None."""
        return self._groups.get(group_name)

    def all_groups(self) -> list[ConsumerGroup]:
        """Returns the groups online."""
        return list(self._groups.values())

    def subscribers(self, topic: str) -> list[str]:
        """Returns the groups online that subscribe to the topic."""
        return [name for name, group in self._groups.items() if topic in group.subscriptions]
