"""The consumers online, by group, and their subscriptions (RocketMQ's ConsumerManager and ConsumerGroupInfo)."""

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
from rocketmq_broker.server.clients.client_channel import ClientChannel
from rocketmq_broker.server.clients.memberships import Memberships

logger = logging.getLogger(__name__)

_MAX_TEXT_LENGTH: Final = 200
"""Characters of a member's subscriptions that are kept, for comparing and for naming them."""

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
    _texts: dict[Connection, str] = field(default_factory=dict)
    """Each member's subscriptions; nothing of a member without any, which may ask for queues by itself."""
    _members_of: Counter[str] = field(default_factory=Counter)
    """The number of members by their subscriptions."""
    _reported: str | None = None

    def client_ids(self) -> list[str]:
        """Returns the ids of the members."""
        return [channel.client_id for channel in self.channels.values()]

    def channel_of(self, client_id: str) -> ClientChannel | None:
        """Returns the member with this id, or None."""
        return next((channel for channel in self.channels.values() if channel.client_id == client_id), None)

    @property
    def is_divided(self) -> bool:
        """Returns whether the members subscribe to different messages."""
        return len(self._members_of) > 1

    def disagreement(self) -> str | None:
        """Returns how the members' subscriptions differ, naming two members; None if all have the same."""
        if not self.is_divided:
            return None
        (first, text), *others = self._texts.items()
        second, other = next(member for member in others if member[1] != text)
        return printable(
            f"members of the consumer group {self.name} subscribe to different messages: {self._named(first)} to {text}, "
            f"{self._named(second)} to {other}. A queue belongs to one member, and what it does not want reaches no other"
        )

    def _named(self, connection: Connection) -> str:
        return self.channels[connection].client_id[:_MAX_TEXT_LENGTH]

    def note(self, connection: Connection, subscriptions: Iterable[SubscriptionData]) -> None:
        """Notes a member's own subscriptions. Logs a warning when the members begin to differ, or to differ in another way."""
        self._set_text(connection, _text(subscriptions, topics.retry_topic(self.name)))
        found = self.disagreement()
        if found is not None and found != self._reported:
            logger.warning("%s. Give all members the same subscriptions, or each program a group of its own", found)
        self._reported = found

    def leave(self, connection: Connection) -> bool:
        """Removes a member. Returns whether it was one."""
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


def _text(subscriptions: Iterable[SubscriptionData], retry_topic: str) -> str:
    """Returns what a member subscribes to, the same text for the same messages. A long text ends with a digest of the whole."""
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
        group.note(channel.connection, data.subscription_data_set)
        if changed and notify:
            self._on_change(group.name, list(group.channels))
        return changed

    def unregister(self, group_name: str, connection: Connection, *, notify: bool = True) -> None:
        """Removes a member that left or lost its connection. Notifies the others, unless `notify` is off."""
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

    def disagreement(self, group_name: str) -> str | None:
        """Returns how the subscriptions of the group's members differ; None if they agree."""
        group = self._groups.get(group_name)
        return None if group is None else group.disagreement()

    def all_groups(self) -> list[ConsumerGroup]:
        """Returns the groups online."""
        return list(self._groups.values())

    def topics_changed(self, topics: Set[str]) -> None:
        """Notifies the groups that subscribe to one of these topics: a client that waits for a topic looks for it at once."""
        for group in self._groups.values():
            if not topics.isdisjoint(group.subscriptions):
                self._on_change(group.name, list(group.channels))

    def subscribers(self, topic: str) -> list[str]:
        """Returns the groups online that subscribe to the topic."""
        return [name for name, group in self._groups.items() if topic in group.subscriptions]
