"""What all connections together may hold in memory: input that is no whole frame or not handled yet, and output not sent yet."""

from __future__ import annotations

from typing import Final, Protocol

DEFAULT_BUDGET_BYTES: Final = 256 * 1024 * 1024
NOT_COUNTED_BYTES: Final = 4096
"""A connection that holds no more need not be counted: nearly all hold less, nearly always."""


class Holder(Protocol):
    """A connection."""

    @property
    def held_bytes(self) -> int:
        """What it holds now."""

    def give_up(self, total_bytes: int) -> None:
        """Closes it at once: it holds most when all of them together hold `total_bytes`, which is too much."""


class MemoryBudget:
    """Counts what connections hold. When it is too much, those that hold most are closed, until the rest is within the budget.

    What a connection noted may be out of date, for it is not told of each byte that the system takes from it. So all are counted
    anew before one is closed.
    """

    def __init__(self, budget_bytes: int = DEFAULT_BUDGET_BYTES) -> None:
        self._budget_bytes = budget_bytes
        self._held: dict[Holder, int] = {}
        self.total_bytes = 0
        """As the connections noted it."""

    def note(self, holder: Holder, held_bytes: int) -> None:
        """A connection holds that much now."""
        self.forget(holder)
        if held_bytes <= NOT_COUNTED_BYTES:
            return
        self._held[holder] = held_bytes
        self.total_bytes += held_bytes
        if self.total_bytes > self._budget_bytes:
            self._relieve()

    def forget(self, holder: Holder) -> None:
        """The connection is gone."""
        self.total_bytes -= self._held.pop(holder, 0)

    def _relieve(self) -> None:
        self._held = {holder: held_bytes for holder in self._held if (held_bytes := holder.held_bytes) > NOT_COUNTED_BYTES}
        self.total_bytes = sum(self._held.values())
        while self.total_bytes > self._budget_bytes:
            greediest = max(self._held, key=self._held.__getitem__)
            total_bytes = self.total_bytes
            self.forget(greediest)
            greediest.give_up(total_bytes)
