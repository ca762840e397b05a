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
        if channel.connection not in members or channel.client_id not in self._connections:
            self._connections[channel.client_id] = channel.connection
        members[channel.connection] = channel

    def unregister(self, group: str, connection: Connection) -> None:
        """A member says goodbye."""
        members = self._groups.get(group)
        channel = members.pop(connection, None) if members is not None else None
        if channel is None:
            return
        if not members:
            del self._groups[group]
        is_known = self._connections.get(channel.client_id) is connection
        if is_known and not any(connection in others for others in self._groups.values()):
            del self._connections[channel.client_id]

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
