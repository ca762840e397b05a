"""Which producers are online, by group and by client id (RocketMQ's ProducerManager)."""

from broker.remoting.connection import Connection
from broker.server.client_channel import ClientChannel


class ProducerGroups:
    """Groups of producers as their heartbeats tell. A group without a member is forgotten."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[Connection, ClientChannel]] = {}
        self._connections: dict[str, Connection] = {}
        """By client id."""

    def register(self, group: str, channel: ClientChannel) -> None:
        """A member's heartbeat: it is new, or still there."""
        members = self._groups.setdefault(group, {})
        before = members.get(channel.connection)
        if before is None or channel.client_id not in self._connections:
            self._connections[channel.client_id] = channel.connection
        members[channel.connection] = channel
        if before is not None and before.client_id != channel.client_id:
            self._forget_client_unless_member(before)

    def unregister(self, group: str, connection: Connection) -> None:
        """A member says goodbye."""
        members = self._groups.get(group)
        channel = members.pop(connection, None) if members is not None else None
        if channel is None:
            return
        if not members:
            del self._groups[group]
        self._forget_client_unless_member(channel)

    def forget(self, connection: Connection) -> None:
        """The connection is closed: it is no member of any group any more."""
        for group in list(self._groups):
            self.unregister(group, connection)

    def expired(self, now_ms: int) -> list[Connection]:
        """Connections whose heartbeats stopped."""
        return [
            channel.connection for members in self._groups.values() for channel in members.values() if channel.is_expired(now_ms)
        ]

    def connections(self, group: str) -> list[Connection]:
        """The connections of a group's members, longest known first."""
        return list(self._groups.get(group, ()))

    def connection_of(self, client_id: str) -> Connection | None:
        """The connection of a client that has producers, the newest if it has several; None if none is online."""
        return self._connections.get(client_id)

    def channels(self, group: str) -> list[ClientChannel] | None:
        """The group's members, or None if it has none."""
        members = self._groups.get(group)
        return list(members.values()) if members else None

    def all_channels(self) -> dict[str, list[ClientChannel]]:
        """Every group with its members."""
        return {group: list(members.values()) for group, members in self._groups.items()}

    def _forget_client_unless_member(self, channel: ClientChannel) -> None:
        """One connection may speak for several clients, each in groups of its own."""
        client_id, connection = channel.client_id, channel.connection
        if self._connections.get(client_id) is not connection:
            return
        here = (members.get(connection) for members in self._groups.values())
        if not any(member is not None and member.client_id == client_id for member in here):
            del self._connections[client_id]
