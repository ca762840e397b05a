"""Tracks the groups of each connection, so that the broker can remove a closed connection without searching all groups."""

from __future__ import annotations

from rocketmq_broker.remoting.connections.connection import Connection


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
