"""Which producers are online, by group (RocketMQ's ProducerManager)."""

from broker.remoting.connection import Connection
from broker.server.client_channel import ClientChannel


class ProducerGroups:
    """Groups of producers as their heartbeats tell. A group without a member is forgotten."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[Connection, ClientChannel]] = {}

    def register(self, group: str, channel: ClientChannel) -> None:
        """A member's heartbeat: it is new, or still there."""
        self._groups.setdefault(group, {})[channel.connection] = channel

    def unregister(self, group: str, connection: Connection) -> None:
        """A member says goodbye."""
        members = self._groups.get(group)
        if members is not None and members.pop(connection, None) is not None and not members:
            del self._groups[group]

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

    def channels(self, group: str) -> list[ClientChannel] | None:
        """The group's members, or None if it has none."""
        members = self._groups.get(group)
        return list(members.values()) if members else None

    def all_channels(self) -> dict[str, list[ClientChannel]]:
        """Every group with its members."""
        return {group: list(members.values()) for group, members in self._groups.items()}
