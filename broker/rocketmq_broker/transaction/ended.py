"""The latest ended transactions, so that a late decision is refused with its reason."""

from __future__ import annotations

from typing import Final

from rocketmq_broker.transaction.states import State

REMEMBERED: Final = 10_000
"""At least this many ended transactions are remembered, and at most twice as many."""


class EndedTransactions:
    """The states of the latest ended transactions, by the commit log offset of their half message."""

    def __init__(self) -> None:
        self._newer: dict[int, State] = {}
        self._older: dict[int, State] = {}

    def __len__(self) -> int:
        return len(self._newer) + len(self._older)

    def remember(self, commit_log_offset: int, state: State) -> None:
        """Stores the state in which a transaction ended."""
        self._newer[commit_log_offset] = state

    def forget(self, commit_log_offset: int) -> None:
        """Forgets a transaction that is pending again."""
        self._newer.pop(commit_log_offset, None)
        self._older.pop(commit_log_offset, None)

    def forget_oldest(self) -> None:
        """Bounds the memory: drops the older half when the newer one is full."""
        if len(self._newer) > REMEMBERED:
            self._older, self._newer = self._newer, {}

    def state_of(self, commit_log_offset: int) -> State | None:
        """Returns the state of a transaction that ended lately; None for any other."""
        return self._newer.get(commit_log_offset) or self._older.get(commit_log_offset)
