"""The groups of each connection, so that a closed connection is removed without searching all groups."""

from __future__ import annotations

from rocketmq_broker.remoting.connections.connection import Connection


class Memberships:
    """Group names by connection."""

    def __init__(self) -> None:
        self._groups_of: dict[Connection, set[str]] = {}
        self.count = 0
        """The number of memberships of all connections."""

    def of(self, connection: Connection) -> set[str]:
        """Returns the groups of a connection. The caller must not change the set."""
        return self._groups_of.get(connection, set())

    def add(self, connection: Connection, group: str) -> None:
        """Adds the connection to a group. It must not be a member already."""
        self._groups_of.setdefault(connection, set()).add(group)
        self.count += 1

    def remove(self, connection: Connection, group: str) -> None:
        """Removes the connection from a group. It must be a member."""
        groups = self._groups_of[connection]
        groups.remove(group)
        if not groups:
            del self._groups_of[connection]
        self.count -= 1
