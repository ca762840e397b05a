"""In which groups each connection is, so that its end costs no look at the other groups."""

from __future__ import annotations

from rocketmq_broker.remoting.connection import Connection


class Memberships:
    """Groups by connection."""

    def __init__(self) -> None:
        self._groups_of: dict[Connection, set[str]] = {}
        self.count = 0
        """In how many groups connections are, all together."""

    def of(self, connection: Connection) -> set[str]:
        """The groups of whoever is at the other end; to be read only."""
        return self._groups_of.get(connection, set())

    def add(self, connection: Connection, group: str) -> None:
        """The connection is in the group from now on, in which it was not before."""
        self._groups_of.setdefault(connection, set()).add(group)
        self.count += 1

    def remove(self, connection: Connection, group: str) -> None:
        """The connection leaves the group, in which it was."""
        groups = self._groups_of[connection]
        groups.remove(group)
        if not groups:
            del self._groups_of[connection]
        self.count -= 1
