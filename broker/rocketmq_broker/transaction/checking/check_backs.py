"""The check-backs of transactions, with the producers asked and their answers: for people who read a transaction's timeline.

The broker keeps the latest check-backs in memory, and decides nothing by them. As with RocketMQ, the commit log has only their
number: writing each of them there would cost two more records a check.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

MAX_CHECK_BACKS: Final = 10_000
"""Check-backs kept for all transactions together: some 4 MB. One costs 3 µs."""
MAX_FAILURE_LENGTH: Final = 300
"""Letters kept of a failure: a listener that fails at each check-back costs some 4 MB more at most."""


@dataclass(slots=True)
class CheckBack:
    """One question to a producer."""

    asked_ms: int
    producer: str
    """The producer's address."""
    answer: int | None = None
    """TRANSACTION_NOT, TRANSACTION_COMMIT or TRANSACTION_ROLLBACK (sysflag); None without an answer."""
    answered_ms: int | None = None
    failure: str | None = None
    """Why the producer does not know, as its client says it: the exception of its listener."""


class CheckBacks:
    """The latest check-backs. The commit log offset of its first half message identifies a transaction."""

    def __init__(self, most: int = MAX_CHECK_BACKS) -> None:
        """Keeps at most `most` check-backs: drops first the transactions that were not asked about for longest."""
        self._most = most
        self._count = 0
        self._by_transaction: OrderedDict[int, list[CheckBack]] = OrderedDict()

    def asked(self, commit_log_offset: int, producer: str, now_ms: int) -> None:
        """Records that a producer was asked."""
        self._by_transaction.setdefault(commit_log_offset, []).append(CheckBack(now_ms, producer))
        self._by_transaction.move_to_end(commit_log_offset)
        self._count += 1
        while self._count > self._most:
            _, forgotten = self._by_transaction.popitem(last=False)
            self._count -= len(forgotten)

    def answered(self, commit_log_offset: int, producer: str, answer: int, now_ms: int, failure: str | None = None) -> None:
        """Records a producer's answer. Ignores an answer to no recorded question."""
        for check_back in self._by_transaction.get(commit_log_offset, ()):
            if check_back.producer == producer and check_back.answer is None:
                check_back.answer, check_back.answered_ms = answer, now_ms
                check_back.failure = failure[:MAX_FAILURE_LENGTH] if failure else None
                return

    def of(self, commit_log_offset: int) -> tuple[CheckBack, ...]:
        """Returns the check-backs of a transaction, the oldest first."""
        return tuple(self._by_transaction.get(commit_log_offset, ()))
