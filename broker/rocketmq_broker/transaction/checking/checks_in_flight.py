"""The answers that producers owe: they tell which producer a check may go to, and which checks nobody can answer.

A check counts against its message, so none is sent to a producer that is still busy with the one before, and those that a
producer left unanswered when its connection ended are given back. An Apache client would queue a second check behind the
first, hold 2,000 of them and silently drop the rest; our own client answers both at once.

An unanswered check is repeated after a while, and again after twice as long: its answer may be lost. A repetition has the
number of its check and counts nothing. A producer that has answered nothing since it was asked may hang: of its
checks only the oldest is repeated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import takewhile
from typing import Final, Generic, TypeVar

from rocketmq_broker.transaction.checking.check_backs import CheckBacks

Producer = TypeVar("Producer", bound=Hashable)

ANSWER_TIMEOUT_MS: Final = 60_000
"""Time for an answer before a producer is asked the same again: RocketMQ's default transactionCheckInterval.

A RocketMQ broker asks no sooner by default, and bounded waits of programs for a database are shorter.
"""
REPEAT_AFTER_MS: Final = 6_000
"""Wait for an answer before a check is repeated for the first time (transactionCheckAnswerTimeOut)."""


@dataclass(slots=True)
class _Owed:
    """The answers that one producer owes."""

    in_flight: dict[int, int] = field(default_factory=dict)
    """Time of the question by transaction, the oldest first."""
    overdue: dict[int, int] = field(default_factory=dict)
    """Number of timed-out checks by transaction."""
    uncounted: set[int] = field(default_factory=set)
    """Transactions in flight whose check another producer was asked first: they count nothing."""
    answered_ms: int | None = None
    """The time of the latest answer to any check."""


class ChecksInFlight(Generic[Producer]):
    """Checks that were sent and not answered, by producer. A transaction's commit log offset identifies it.

    A producer that lets one time out is asked about one transaction at a time until it answers any check.
    """

    def __init__(
        self,
        *,
        limit: int = 256,
        answer_timeout_ms: int = ANSWER_TIMEOUT_MS,
        repeat_after_ms: int = REPEAT_AFTER_MS,
        longest_wait_ms: int = ANSWER_TIMEOUT_MS,
    ) -> None:
        """Allows `limit` checks per producer at a time. The wait before a repetition doubles up to `longest_wait_ms`."""
        self._repeat_after_ms = repeat_after_ms
        self._longest_wait_ms = max(repeat_after_ms, longest_wait_ms)
        self._repetitions: list[tuple[int, int, Producer, int, int, int]] = []
        """A heap of repetitions: time due, serial number, producer, transaction, time of the question, wait."""
        self._number = 0
        self._limit = limit
        self._answer_timeout_ms = answer_timeout_ms
        self._owed: dict[Producer, _Owed] = {}
        self.changes = 0
        """A number that grows with each question, answer and returned check."""
        self.on_record = CheckBacks()
        """The check-backs shown to operators; they decide nothing."""

    def notice_time(self, now_ms: int) -> None:
        """Marks as overdue the checks that were not answered in time."""
        for owed in self._owed.values():
            for commit_log_offset in self._timed_out(owed.in_flight, now_ms):
                del owed.in_flight[commit_log_offset]
                counted = 0 if commit_log_offset in owed.uncounted else 1
                owed.uncounted.discard(commit_log_offset)
                owed.overdue[commit_log_offset] = owed.overdue.get(commit_log_offset, 0) + counted

    def clock_stepped(self, step_ms: int) -> None:
        """Moves all times along with a step of the clock, so that nobody has less or more time to answer."""
        for owed in self._owed.values():
            for commit_log_offset in owed.in_flight:
                owed.in_flight[commit_log_offset] += step_ms
            if owed.answered_ms is not None:
                owed.answered_ms += step_ms
        self._repetitions = [
            (due_ms + step_ms, number, producer, commit_log_offset, asked_ms + step_ms, wait_ms)
            for due_ms, number, producer, commit_log_offset, asked_ms, wait_ms in self._repetitions
        ]
        heapify(self._repetitions)

    def may_ask(self, producer: Producer, commit_log_offset: int) -> bool:
        """Returns whether the producer may get a check: it owes no answer about the transaction, and not too many others."""
        owed = self._owed.get(producer)
        if owed is None:
            return True
        if commit_log_offset in owed.in_flight:
            return False
        return len(owed.in_flight) < (1 if owed.overdue else self._limit)

    def asked(self, producer: Producer, commit_log_offset: int, now_ms: int) -> None:
        """Records a check that was sent, and counts."""
        owed = self._owed.setdefault(producer, _Owed())
        owed.in_flight.pop(commit_log_offset, None)
        owed.in_flight[commit_log_offset] = now_ms
        self._repeat_later(producer, commit_log_offset, now_ms, now_ms, self._repeat_after_ms)
        self.changes += 1

    def next_repetition_ms(self) -> int | None:
        """Returns when the next repetition is due; the time may be too early, never too late. None if no check is in flight."""
        while self._repetitions:
            due_ms, _, producer, commit_log_offset, asked_ms, _ = self._repetitions[0]
            owed = self._owed.get(producer)
            if owed is not None and owed.in_flight.get(commit_log_offset) == asked_ms:
                return due_ms
            heappop(self._repetitions)  # it is answered
        return None

    def take_repetitions(self, now_ms: int, limit: int) -> Iterator[tuple[Producer, int]]:
        """Yields producers and transactions to ask again, at most `limit`. Schedules the next repetition of each."""
        for _ in range(limit):
            if not self._repetitions or self._repetitions[0][0] > now_ms:
                return
            _, _, producer, commit_log_offset, asked_ms, wait_ms = heappop(self._repetitions)
            owed = self._owed.get(producer)
            if owed is None or owed.in_flight.get(commit_log_offset) != asked_ms:
                continue
            may_hang = owed.answered_ms is None or owed.answered_ms < asked_ms
            is_repeated = not may_hang or next(iter(owed.in_flight)) == commit_log_offset
            next_wait_ms = min(2 * wait_ms, self._longest_wait_ms) if is_repeated else wait_ms
            self._repeat_later(producer, commit_log_offset, asked_ms, now_ms, next_wait_ms)
            if is_repeated:
                yield producer, commit_log_offset

    def repeated_by(self, producer: Producer, commit_log_offset: int, now_ms: int) -> None:
        """Records that this producer also got a check that another one left unanswered. It counts nothing."""
        owed = self._owed.setdefault(producer, _Owed())
        if commit_log_offset not in owed.in_flight:
            owed.in_flight[commit_log_offset] = now_ms
            owed.uncounted.add(commit_log_offset)
        self.changes += 1

    def _repeat_later(self, producer: Producer, commit_log_offset: int, asked_ms: int, now_ms: int, wait_ms: int) -> None:
        self._number += 1
        heappush(self._repetitions, (now_ms + wait_ms, self._number, producer, commit_log_offset, asked_ms, wait_ms))

    def answered(self, producer: Producer, commit_log_offset: int, now_ms: int | None = None) -> None:
        """Records an answer of any kind, also UNKNOWN.

        It proves that the producer works, and that its overdue checks stay unanswered.
        """
        owed = self._owed.get(producer)
        if owed is None:
            return
        owed.in_flight.pop(commit_log_offset, None)
        owed.uncounted.discard(commit_log_offset)
        owed.answered_ms = now_ms if now_ms is not None else owed.answered_ms
        owed.overdue.clear()
        if not owed.in_flight:
            del self._owed[producer]
        self.changes += 1

    def owed_since_ms(self, producers: Iterable[Producer], commit_log_offset: int) -> int | None:
        """Returns since when one of these producers owes the transaction's answer; None if none does, or all are overdue."""
        since = [
            owed.in_flight[commit_log_offset]
            for owed in map(self._owed.get, producers)
            if owed is not None and commit_log_offset in owed.in_flight
        ]
        return min(since, default=None)

    def is_silent(self, producer: Producer) -> bool:
        """Returns whether the producer let a check time out and has answered none since."""
        owed = self._owed.get(producer)
        return owed is not None and bool(owed.overdue)

    def departed(self, producer: Producer) -> Mapping[int, int]:
        """Drops a producer that has left. Returns the number of checks of each transaction that it left unanswered."""
        owed = self._owed.pop(producer, None)
        if owed is None:
            return {}
        self.changes += 1
        return _unanswered([owed])

    def unanswered(self) -> Mapping[int, int]:
        """Returns the number of unanswered checks of each transaction."""
        return _unanswered(self._owed.values())

    def unanswered_about(self, commit_log_offset: int) -> int:
        """Returns the number of unanswered checks of that transaction."""
        return sum(
            owed.overdue.get(commit_log_offset, 0)
            + (commit_log_offset in owed.in_flight and commit_log_offset not in owed.uncounted)
            for owed in self._owed.values()
        )

    def count(self, producer: Producer) -> int:
        """Returns the number of transactions about which the producer owes an answer, without overdue ones."""
        owed = self._owed.get(producer)
        return len(owed.in_flight) if owed is not None else 0

    def _timed_out(self, in_flight: Mapping[int, int], now_ms: int) -> list[int]:
        latest_ms = now_ms - self._answer_timeout_ms
        return [offset for offset, _ in takewhile(lambda check: check[1] <= latest_ms, in_flight.items())]


def _unanswered(all_owed: Iterable[_Owed]) -> Mapping[int, int]:
    checks: Counter[int] = Counter()
    for owed in all_owed:
        checks.update(owed.overdue)
        checks.update(owed.in_flight.keys() - owed.uncounted)
    return checks
