"""The memory that all connections together may hold: incomplete frames, unhandled requests, and unsent output."""

from __future__ import annotations

from typing import Final, Protocol

DEFAULT_BUDGET_BYTES: Final = 256 * 1024 * 1024
NOT_COUNTED_BYTES: Final = 4096
"""Bytes up to which a connection is not counted; nearly all connections stay below."""


class Holder(Protocol):
    """A connection."""

    @property
    def held_bytes(self) -> int:
        """Returns the number of bytes that the connection holds now."""

    def give_up(self, total_bytes: int) -> None:
        """Closes the connection at once: no other holds more, and all together hold `total_bytes`, too many."""


class MemoryBudget:
    """A counter of the memory of connections. Above the budget it closes those that hold most, until the rest is within it.

    A connection's number may be out of date, because the system takes bytes from it without notice. So all are counted
    again before one is closed.
    """

    def __init__(self, budget_bytes: int = DEFAULT_BUDGET_BYTES) -> None:
        self._budget_bytes = budget_bytes
        self._held: dict[Holder, int] = {}
        self.total_bytes = 0
        """The sum of the numbers noted."""

    def note(self, holder: Holder, held_bytes: int) -> None:
        """Notes how many bytes a connection holds now."""
        self.forget(holder)
        if held_bytes <= NOT_COUNTED_BYTES:
            return
        self._held[holder] = held_bytes
        self.total_bytes += held_bytes
        if self.total_bytes > self._budget_bytes:
            self._relieve()

    def forget(self, holder: Holder) -> None:
        """Drops a connection that has ended."""
        self.total_bytes -= self._held.pop(holder, 0)

    def _relieve(self) -> None:
        self._held = {holder: held_bytes for holder in self._held if (held_bytes := holder.held_bytes) > NOT_COUNTED_BYTES}
        self.total_bytes = sum(self._held.values())
        while self.total_bytes > self._budget_bytes:
            greediest = max(self._held, key=self._held.__getitem__)
            total_bytes = self.total_bytes
            self.forget(greediest)
            greediest.give_up(total_bytes)
