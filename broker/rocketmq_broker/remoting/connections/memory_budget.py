"""Limits the total memory of incomplete frames, unhandled requests and unsent output on all connections."""

from typing import Final, Protocol

DEFAULT_BUDGET_BYTES: Final = 256 * 1024 * 1024
NOT_COUNTED_BYTES: Final = 4096
"""The number of bytes up to which a connection is not counted. Nearly all connections use less."""


class Holder(Protocol):
    """The interface of a connection whose memory is counted."""

    @property
    def held_bytes(self) -> int:
        """Returns the number of bytes that the connection uses now."""

    def give_up(self, total_bytes: int) -> None:
        """Closes this connection, which uses the most memory.

        `total_bytes` is the memory used by all connections together, which exceeds the budget.
        """


class MemoryBudget:
    """Limits the total memory of all connections.

    While the budget is exceeded, closes the connection that uses the most memory. The recorded numbers of bytes may be
    outdated, because the operating system sends output without notification. Therefore, counts the bytes of all
    connections again before it closes a connection.
    """

    def __init__(self, budget_bytes: int = DEFAULT_BUDGET_BYTES) -> None:
        self._budget_bytes = budget_bytes
        self._held: dict[Holder, int] = {}
        self.total_bytes = 0
        """The sum of the recorded numbers of bytes."""

    def note(self, holder: Holder, held_bytes: int) -> None:
        """Records the number of bytes that a connection uses now."""
        self.forget(holder)
        if held_bytes <= NOT_COUNTED_BYTES:
            return
        self._held[holder] = held_bytes
        self.total_bytes += held_bytes
        if self.total_bytes > self._budget_bytes:
            self._relieve()

    def forget(self, holder: Holder) -> None:
        """Removes a connection that has ended."""
        self.total_bytes -= self._held.pop(holder, 0)

    def _relieve(self) -> None:
        self._held = {holder: held_bytes for holder in self._held if (held_bytes := holder.held_bytes) > NOT_COUNTED_BYTES}
        self.total_bytes = sum(self._held.values())
        while self.total_bytes > self._budget_bytes:
            greediest = max(self._held, key=self._held.__getitem__)
            total_bytes = self.total_bytes
            self.forget(greediest)
            greediest.give_up(total_bytes)
