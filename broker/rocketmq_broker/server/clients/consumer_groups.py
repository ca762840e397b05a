"""Tracks the connected consumers, keyed by group, and their subscriptions (RocketMQ's ConsumerManager and ConsumerGroupInfo)."""

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, field
from typing import Final

from rocketmq_broker.message import topics
from rocketmq_broker.message.text.printable import printable
from rocketmq_broker.protocol.bodies.heartbeat import (
    EXPRESSION_TAG,
    SUBSCRIBE_ALL,
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    MessageModel,
    SubscriptionData,
)
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.server.clients.client_channel import ClientChannel, Memberships

logger = logging.getLogger(__name__)

_MAX_TEXT_LENGTH: Final = 200
"""The maximum length, in characters, of a string that represents a member's subscriptions in comparisons and log lines."""

ConsumersChanged = Callable[[str, list[Connection]], None]
"""A function that is called with a group and the connections of its members when the members must rebalance."""


@dataclass(slots=True)
class ConsumerGroup:
    """A consumer group with its settings, its members, and its subscriptions, keyed by topic."""

    name: str
    consume_type: ConsumeType | None
    message_model: MessageModel | None
    consume_from_where: ConsumeFromWhere | None
    subscriptions: dict[str, SubscriptionData] = field(default_factory=dict)
    channels: dict[Connection, ClientChannel] = field(default_factory=dict)
    _texts: dict[Connection, str] = field(default_factory=dict)
    """The subscriptions of each member, encoded as strings.

    Members without subscriptions are omitted, because they may assign queues themselves.
    """
    _members_of: Counter[str] = field(default_factory=Counter)
    """The number of members that have the same string in `_texts`, keyed by that string."""
    _reported: str | None = None

    def client_ids(self) -> list[str]:
        """Returns the ids of the members."""
        return [channel.client_id for channel in self.channels.values()]

    def channel_of(self, client_id: str) -> ClientChannel | None:
        """Returns the member with this client id, or None."""
        return next((channel for channel in self.channels.values() if channel.client_id == client_id), None)

    @property
    def is_divided(self) -> bool:
        """Returns True if the members have different subscriptions."""
        return len(self._members_of) > 1

    def disagreement(self) -> str | None:
        """Describes how the members' subscriptions differ, and names two members. Returns None if all members agree."""
        if not self.is_divided:
            return None
        (first, text), *others = self._texts.items()
        second, other = next(member for member in others if member[1] != text)
        return printable(
            f"members of the consumer group {self.name} subscribe to different messages: {self._named(first)} to {text}, "
            f"{self._named(second)} to {other}. One member reads each queue, and the others do not receive what it filters out"
        )

    def _named(self, connection: Connection) -> str:
        return self.channels[connection].client_id[:_MAX_TEXT_LENGTH]

    def note(self, connection: Connection, subscriptions: Iterable[SubscriptionData]) -> None:
        """Records a member's subscriptions.

        Logs a warning when the members' subscriptions begin to differ, or differ in a new way.
        """
        self._set_text(connection, _text(subscriptions, topics.retry_topic(self.name)))
        found = self.disagreement()
        if found is not None and found != self._reported:
            logger.warning("%s. Use the same subscriptions for all members, or a separate group for each program", found)
        self._reported = found

    def leave(self, connection: Connection) -> bool:
        """Removes a member. Returns False if the connection was not a member."""
        self._set_text(connection, "")
        return self.channels.pop(connection, None) is not None

    def _set_text(self, connection: Connection, text: str) -> None:
        before = self._texts.get(connection, "")
        if before == text:
            return
        if before:
            del self._texts[connection]
            self._members_of[before] -= 1
            if not self._members_of[before]:
                del self._members_of[before]
        if text:
            self._texts[connection] = text
            self._members_of[text] += 1

    def subscribe(self, subscriptions: Iterable[SubscriptionData]) -> bool:
        """Replaces the group's subscriptions with those of a member. Returns True if topics were added or removed.

        If the group and the member both subscribe to a topic, the subscription with the higher version is kept.
        """
        received = {subscription.topic: subscription for subscription in subscriptions}
        changed = received.keys() != self.subscriptions.keys()
        for topic, known in self.subscriptions.items():
            if topic in received and received[topic].sub_version <= known.sub_version:
                received[topic] = known
        self.subscriptions = received
        return changed


def _text(subscriptions: Iterable[SubscriptionData], retry_topic: str) -> str:
    """Formats a member's subscriptions.

    Equal subscriptions give equal strings. A long string is cut, and a digest is appended.
    """
    parts = sorted(f"{it.topic} ({_expression(it)})" for it in subscriptions if it.topic != retry_topic)
    text = ", ".join(parts)
    if len(text) <= _MAX_TEXT_LENGTH:
        return text
    return f"{text[:_MAX_TEXT_LENGTH]}... [{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:16]}]"


def _expression(subscription: SubscriptionData) -> str:
    if subscription.expression_type not in (None, EXPRESSION_TAG):
        return subscription.sub_string
    tags = {tag.strip() for tag in subscription.sub_string.split("||")} - {""}
    return "||".join(sorted(tags)) or SUBSCRIBE_ALL


class ConsumerGroups:
    """The consumer groups with at least one member. Heartbeats register the members."""

    def __init__(self, on_change: ConsumersChanged) -> None:
        self._groups: dict[str, ConsumerGroup] = {}
        self.memberships = Memberships()
        """The groups of each connection. Read-only for callers."""
        self._on_change = on_change

    def register(self, data: ConsumerData, channel: ClientChannel, *, notify: bool = True) -> None:
        """Registers a member. Notifies the members of a change of the group unless `notify` is False."""
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
        group.note(channel.connection, data.subscription_data_set)
        if changed and notify:
            self._on_change(group.name, list(group.channels))

    def unregister(self, group_name: str, connection: Connection, *, notify: bool = True) -> None:
        """Removes a member. Notifies the remaining members unless `notify` is False."""
        group = self._groups.get(group_name)
        if group is None or not group.leave(connection):
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
        """Returns the connections of members that have stopped sending heartbeats."""
        return [
            channel.connection
            for group in self._groups.values()
            for channel in group.channels.values()
            if channel.is_expired(now_ms)
        ]

    def find(self, group_name: str) -> ConsumerGroup | None:
        """Returns the group, or None if it has no members."""
        return self._groups.get(group_name)

    def disagreement(self, group_name: str) -> str | None:
        """Describes how the subscriptions of the group's members differ. Returns None if they agree."""
        group = self._groups.get(group_name)
        return None if group is None else group.disagreement()

    def all_groups(self) -> list[ConsumerGroup]:
        """Returns all groups that have members."""
        return list(self._groups.values())

    def topics_changed(self, topics: Set[str]) -> None:
        """Notifies the groups that subscribe to one of these topics.

        Their waiting clients then look up the new route immediately.
        """
        for group in self._groups.values():
            if not topics.isdisjoint(group.subscriptions):
                self._on_change(group.name, list(group.channels))

    def subscribers(self, topic: str) -> list[str]:
        """Returns the names of the groups that have members and subscribe to the topic."""
        return [name for name, group in self._groups.items() if topic in group.subscriptions]
