"""A client's connection with its last heartbeat (RocketMQ's ClientChannelInfo), and the groups of each connection."""

from dataclasses import dataclass

from rocketmq_broker.remoting.connections.connection import Connection

CHANNEL_EXPIRES_MS = 120_000
"""The time, in milliseconds, after which a channel without a heartbeat is closed. Clients send a heartbeat every 30 s."""


@dataclass(slots=True)
class ClientChannel:
    """The client at the other end of a connection."""

    connection: Connection
    client_id: str
    language: str
    version: int
    last_heartbeat_ms: int
    """The time of the last heartbeat, in milliseconds of a monotonic clock. Changes of the system time do not affect it."""

    def is_expired(self, now_ms: int) -> bool:
        """Returns True if the client has stopped sending heartbeats."""
        return now_ms - self.last_heartbeat_ms > CHANNEL_EXPIRES_MS


class Memberships:
    """Maps each connection to the names of its groups."""

    def __init__(self) -> None:
        self._groups_of: dict[Connection, set[str]] = {}
        self.count = 0
        """The number of memberships of all connections."""

    def of(self, connection: Connection) -> set[str]:
        """Returns the names of a connection's groups. The caller must not change the set."""
        return self._groups_of.get(connection, set())

    def add(self, connection: Connection, group: str) -> None:
        """Adds the connection to a group. The connection must not be a member already."""
        self._groups_of.setdefault(connection, set()).add(group)
        self.count += 1

    def remove(self, connection: Connection, group: str) -> None:
        """Removes the connection from a group. The connection must be a member."""
        groups = self._groups_of[connection]
        groups.remove(group)
        if not groups:
            del self._groups_of[connection]
        self.count -= 1
