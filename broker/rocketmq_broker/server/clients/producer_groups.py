"""Tracks the connected producers, keyed by group and by client id (RocketMQ's ProducerManager)."""

from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.server.clients.client_channel import ClientChannel, Memberships


class ProducerGroups:
    """The producer groups with at least one member. Heartbeats register the members."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[Connection, ClientChannel]] = {}
        self._connections: dict[str, Connection] = {}
        """The newest connection of each producer, keyed by client id."""
        self.memberships = Memberships()
        """The groups of each connection. Read-only for callers."""
        self._groups_of_client: dict[tuple[Connection, str], int] = {}
        """The number of groups of each client on each connection. Several clients may share a connection."""

    def register(self, group: str, channel: ClientChannel) -> None:
        """Registers a member, or updates its heartbeat."""
        members = self._groups.setdefault(group, {})
        before = members.get(channel.connection)
        if before is None or channel.client_id not in self._connections:
            self._connections[channel.client_id] = channel.connection
        members[channel.connection] = channel
        if before is None or before.client_id != channel.client_id:
            key = channel.connection, channel.client_id
            self._groups_of_client[key] = self._groups_of_client.get(key, 0) + 1
            if before is None:
                self.memberships.add(channel.connection, group)
            else:
                self._leave(before)

    def unregister(self, group: str, connection: Connection) -> None:
        """Removes a member from its group."""
        members = self._groups.get(group)
        channel = members.pop(connection, None) if members is not None else None
        if channel is None:
            return
        if not members:
            del self._groups[group]
        self.memberships.remove(connection, group)
        self._leave(channel)

    def forget(self, connection: Connection) -> None:
        """Removes a closed connection from all groups."""
        for group in list(self.memberships.of(connection)):
            self.unregister(group, connection)

    def expired(self, now_ms: int) -> list[Connection]:
        """Returns the connections of members that have stopped sending heartbeats."""
        return [
            channel.connection for members in self._groups.values() for channel in members.values() if channel.is_expired(now_ms)
        ]

    def connections(self, group: str) -> list[Connection]:
        """Returns the connections of a group's members, oldest first."""
        return list(self._groups.get(group, ()))

    def connection_of(self, client_id: str) -> Connection | None:
        """Returns the newest connection of a producer with this client id, or None if no such producer is online."""
        return self._connections.get(client_id)

    def channels(self, group: str) -> list[ClientChannel] | None:
        """Returns the group's members, or None if the group has none."""
        members = self._groups.get(group)
        return list(members.values()) if members else None

    def group_names(self) -> list[str]:
        """Returns the names of the groups that have members."""
        return list(self._groups)

    def all_channels(self) -> dict[str, list[ClientChannel]]:
        """Returns the members of each group, keyed by group."""
        return {group: list(members.values()) for group, members in self._groups.items()}

    def _leave(self, channel: ClientChannel) -> None:
        """Decrements the number of groups of the client on this connection. Removes the client after its last group."""
        key = channel.connection, channel.client_id
        self._groups_of_client[key] -= 1
        if not self._groups_of_client[key]:
            del self._groups_of_client[key]
            if self._connections.get(channel.client_id) is channel.connection:
                del self._connections[channel.client_id]
