"""Which check-backs were sent about a transaction, to whom, and what was answered: for people who look at its timeline.

The broker keeps this in memory, for the latest check-backs alone, and decides nothing by it. The commit log has the count of
check-backs only, as RocketMQ's does: writing each of them there would cost two more records a check.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

MOST_CHECK_BACKS: Final = 10_000
"""So many are kept, of all transactions together: some 4 MB. One costs 3 µs."""


@dataclass(slots=True)
class CheckBack:
    """One question to a producer."""

    asked_ms: int
    producer: str
    """The address of the producer that was asked."""
    answer: int | None = None
    """TRANSACTION_NOT, TRANSACTION_COMMIT or TRANSACTION_ROLLBACK (sysflag); None while there is none."""
    answered_ms: int | None = None


class CheckBacks:
    """The latest check-backs. A transaction is named by the commit log offset of its first half message."""

    def __init__(self, most: int = MOST_CHECK_BACKS) -> None:
        """`most` is how many are kept: the transactions that were asked about longest ago are forgotten first."""
        self._most = most
        self._count = 0
        self._by_transaction: OrderedDict[int, list[CheckBack]] = OrderedDict()

    def asked(self, commit_log_offset: int, producer: str, now_ms: int) -> None:
        """A producer was asked."""
        self._by_transaction.setdefault(commit_log_offset, []).append(CheckBack(now_ms, producer))
        self._by_transaction.move_to_end(commit_log_offset)
        self._count += 1
        while self._count > self._most:
            _, forgotten = self._by_transaction.popitem(last=False)
            self._count -= len(forgotten)

    def answered(self, commit_log_offset: int, producer: str, answer: int, now_ms: int) -> None:
        """A producer answered. An answer that belongs to no question on record is passed over."""
        for check_back in self._by_transaction.get(commit_log_offset, ()):
            if check_back.producer == producer and check_back.answer is None:
                check_back.answer, check_back.answered_ms = answer, now_ms
                return

    def of(self, commit_log_offset: int) -> tuple[CheckBack, ...]:
        """Those about a transaction, the oldest first."""
        return tuple(self._by_transaction.get(commit_log_offset, ()))
