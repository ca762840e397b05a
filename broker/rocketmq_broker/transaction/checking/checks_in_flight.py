"""The answers that each producer owes: they say whom a check may go to, and which checks nobody can answer any more.

A check counts against its message, so none is sent to a producer that is still busy with the one before, and those that a
producer left unanswered when its connection ended are given back. An Apache client would queue a second check behind the
first, hold 2,000 of them and drop the rest in silence; our own client answers both with one look.

A check that stays unanswered is repeated after a while, and again after twice as long: its answer may be lost. A repetition has
the number of its check and counts nothing. A producer that has answered nothing at all since it was asked may hang: of its
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
"""How long a producer may look before it is asked the same again: RocketMQ's default transactionCheckInterval.

A RocketMQ broker with its default settings asks no sooner, and the waits for a database that a program bounds are shorter.
"""
REPEAT_AFTER_MS: Final = 6_000
"""How long a check stays unanswered before it is repeated for the first time (transactionCheckAnswerTimeOut)."""


@dataclass(slots=True)
class _Owed:
    """What one producer has not answered."""

    in_flight: dict[int, int] = field(default_factory=dict)
    """Transaction -> when it was asked about, oldest first."""
    overdue: dict[int, int] = field(default_factory=dict)
    """Transaction -> how many checks about it stayed unanswered for the answer time-out."""
    uncounted: set[int] = field(default_factory=set)
    """Those in flight that repeat a check that another producer was asked: they count nothing."""
    answered_ms: int | None = None
    """When it answered anything."""


class ChecksInFlight(Generic[Producer]):
    """Checks that were sent and not answered, by producer. A transaction is named by its commit log offset.

    A producer that lets one time out is asked about one transaction at a time until it answers something.
    """

    def __init__(
        self,
        *,
        limit: int = 256,
        answer_timeout_ms: int = ANSWER_TIMEOUT_MS,
        repeat_after_ms: int = REPEAT_AFTER_MS,
        longest_wait_ms: int = ANSWER_TIMEOUT_MS,
    ) -> None:
        """At most `limit` for each producer at a time. The wait before a repetition doubles up to `longest_wait_ms`."""
        self._repeat_after_ms = repeat_after_ms
        self._longest_wait_ms = max(repeat_after_ms, longest_wait_ms)
        self._repetitions: list[tuple[int, int, Producer, int, int, int]] = []
        """A heap: when to repeat a check, its place among those, who owes the answer, about what, asked when, the wait."""
        self._number = 0
        self._limit = limit
        self._answer_timeout_ms = answer_timeout_ms
        self._owed: dict[Producer, _Owed] = {}
        self.changes = 0
        """Grows whenever something was asked, answered or given back."""
        self.on_record = CheckBacks()
        """What operators are shown; nothing is decided by it."""

    def notice_time(self, now_ms: int) -> None:
        """Checks that were not answered in time are overdue from now on."""
        for owed in self._owed.values():
            for commit_log_offset in self._timed_out(owed.in_flight, now_ms):
                del owed.in_flight[commit_log_offset]
                counted = 0 if commit_log_offset in owed.uncounted else 1
                owed.uncounted.discard(commit_log_offset)
                owed.overdue[commit_log_offset] = owed.overdue.get(commit_log_offset, 0) + counted

    def clock_stepped(self, step_ms: int) -> None:
        """The clock is about to leap: nobody has less time to answer, or more."""
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
        """Whether a check about that transaction may go there: it owes no answer about it, and not too many others."""
        owed = self._owed.get(producer)
        if owed is None:
            return True
        if commit_log_offset in owed.in_flight:
            return False
        return len(owed.in_flight) < (1 if owed.overdue else self._limit)

    def asked(self, producer: Producer, commit_log_offset: int, now_ms: int) -> None:
        """A check was sent, and counts."""
        owed = self._owed.setdefault(producer, _Owed())
        owed.in_flight.pop(commit_log_offset, None)
        owed.in_flight[commit_log_offset] = now_ms
        self._repeat_later(producer, commit_log_offset, now_ms, now_ms, self._repeat_after_ms)
        self.changes += 1

    def next_repetition_ms(self) -> int | None:
        """When a check may have to be repeated next. The time may be too early, never too late. None if none is in flight."""
        while self._repetitions:
            due_ms, _, producer, commit_log_offset, asked_ms, _ = self._repetitions[0]
            owed = self._owed.get(producer)
            if owed is not None and owed.in_flight.get(commit_log_offset) == asked_ms:
                return due_ms
            heappop(self._repetitions)  # it is answered
        return None

    def take_repetitions(self, now_ms: int, limit: int) -> Iterator[tuple[Producer, int]]:
        """Who owes an answer for so long that it, or another one, is to be asked again; at most `limit`, each due again later."""
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
        """A check that another producer left unanswered was sent to this one as well, and counts nothing."""
        owed = self._owed.setdefault(producer, _Owed())
        if commit_log_offset not in owed.in_flight:
            owed.in_flight[commit_log_offset] = now_ms
            owed.uncounted.add(commit_log_offset)
        self.changes += 1

    def _repeat_later(self, producer: Producer, commit_log_offset: int, asked_ms: int, now_ms: int, wait_ms: int) -> None:
        self._number += 1
        heappush(self._repetitions, (now_ms + wait_ms, self._number, producer, commit_log_offset, asked_ms, wait_ms))

    def answered(self, producer: Producer, commit_log_offset: int, now_ms: int | None = None) -> None:
        """The producer said something about that transaction, if only that it does not know.

        So it works, and what is overdue will not be answered any more.
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
        """Since when one of these producers owes the answer about that transaction; None if none does, or all are overdue."""
        since = [
            owed.in_flight[commit_log_offset]
            for owed in map(self._owed.get, producers)
            if owed is not None and commit_log_offset in owed.in_flight
        ]
        return min(since, default=None)

    def is_silent(self, producer: Producer) -> bool:
        """Whether it let a check time out and has answered none since."""
        owed = self._owed.get(producer)
        return owed is not None and bool(owed.overdue)

    def departed(self, producer: Producer) -> Mapping[int, int]:
        """The producer is gone, and owes nothing any more. Tells how many checks of each transaction it left unanswered."""
        owed = self._owed.pop(producer, None)
        if owed is None:
            return {}
        self.changes += 1
        return _unanswered([owed])

    def unanswered(self) -> Mapping[int, int]:
        """How many checks of each transaction no producer has answered yet."""
        return _unanswered(self._owed.values())

    def unanswered_about(self, commit_log_offset: int) -> int:
        """How many checks of that transaction no producer has answered yet."""
        return sum(
            owed.overdue.get(commit_log_offset, 0)
            + (commit_log_offset in owed.in_flight and commit_log_offset not in owed.uncounted)
            for owed in self._owed.values()
        )

    def count(self, producer: Producer) -> int:
        """How many transactions it owes an answer about, overdue ones aside."""
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
