"""Tracks the unanswered check-backs of each producer, to select producers for further checks and to detect lost answers.

Each check counts towards the limit of its message. Therefore no check is sent to a producer that has not answered the
previous check of the transaction. When a producer disconnects, its unanswered checks are no longer counted. Apache's client
queues up to 2,000 checks and silently drops the rest.

An unanswered check is repeated after a while, because the answer may have been lost. The wait doubles with each repetition. A
repetition has the same number as the first check and is not counted. If a producer has not answered any check since the check was
sent, the producer may hang, so only its oldest check is repeated.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import takewhile
from typing import Final, Generic, TypeVar

from rocketmq_broker.transaction.checking.check_backs import CheckBacks

Producer = TypeVar("Producer", bound=Hashable)

ANSWER_TIMEOUT_MS: Final = 60_000
"""The time in milliseconds after which an unanswered check is overdue. It is RocketMQ's default of transactionCheckInterval."""
REPEAT_AFTER_MS: Final = 6_000
"""The time in milliseconds after which an unanswered check is first repeated (transactionCheckAnswerTimeOut)."""


@dataclass(slots=True)
class _Owed:
    """The unanswered checks of one producer."""

    in_flight: dict[int, int] = field(default_factory=dict)
    """The time in milliseconds at which each transaction's check was sent, oldest first, keyed by commit log offset."""
    overdue: dict[int, int] = field(default_factory=dict)
    """The number of timed-out checks of each transaction, keyed by commit log offset."""
    uncounted: set[int] = field(default_factory=set)
    """The transactions in flight whose check was first sent to another producer. These checks are not counted."""
    answered_ms: int | None = None
    """The time of the latest answer to any check, in milliseconds, or None."""


class ChecksInFlight(Generic[Producer]):
    """The unanswered checks of all producers. Transactions are identified by commit log offset.

    After a check of a producer times out, the producer gets checks for only one transaction at a time until it answers any check.
    """

    def __init__(
        self,
        *,
        limit: int = 256,
        answer_timeout_ms: int = ANSWER_TIMEOUT_MS,
        repeat_after_ms: int = REPEAT_AFTER_MS,
        max_wait_ms: int = ANSWER_TIMEOUT_MS,
    ) -> None:
        """Creates an empty table. `limit` is the maximum number of checks in flight for each producer.

        The wait before a repetition doubles each time, up to `max_wait_ms`.
        """
        self._repeat_after_ms = repeat_after_ms
        self._max_wait_ms = max(repeat_after_ms, max_wait_ms)
        self._repetitions: list[tuple[int, int, Producer, int, int, int]] = []
        """A heap of repetitions, each with due time, serial number, producer, transaction, time of the check, and wait."""
        self._number = 0
        self._limit = limit
        self._answer_timeout_ms = answer_timeout_ms
        self._owed: dict[Producer, _Owed] = {}
        self.changes = 0
        """A counter that increases when a check is sent or answered, or a producer disconnects."""
        self.on_record = CheckBacks()
        """The history of check-backs, for operators. No decision depends on it."""

    def notice_time(self, now_ms: int) -> None:
        """Marks checks as overdue if they have been unanswered for longer than the timeout."""
        for owed in self._owed.values():
            for commit_log_offset in self._timed_out(owed.in_flight, now_ms):
                del owed.in_flight[commit_log_offset]
                counted = 0 if commit_log_offset in owed.uncounted else 1
                owed.uncounted.discard(commit_log_offset)
                owed.overdue[commit_log_offset] = owed.overdue.get(commit_log_offset, 0) + counted

    def clock_stepped(self, step_ms: int) -> None:
        """Shifts all times by a step of the system clock, so that the remaining waiting times do not change."""
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
        """Returns True if the producer has no unanswered check of the transaction, and is below the limit of checks."""
        owed = self._owed.get(producer)
        if owed is None:
            return True
        if commit_log_offset in owed.in_flight:
            return False
        return len(owed.in_flight) < (1 if owed.overdue else self._limit)

    def asked(self, producer: Producer, commit_log_offset: int, now_ms: int) -> None:
        """Records that a check was sent to a producer. The check counts towards the transaction's limit."""
        owed = self._owed.setdefault(producer, _Owed())
        owed.in_flight.pop(commit_log_offset, None)
        owed.in_flight[commit_log_offset] = now_ms
        self._repeat_later(producer, commit_log_offset, now_ms, now_ms, self._repeat_after_ms)
        self.changes += 1

    def next_repetition_ms(self) -> int | None:
        """Returns the time in milliseconds at which the next repetition is due, or None if no check is in flight."""
        while self._repetitions:
            due_ms, _, producer, commit_log_offset, asked_ms, _ = self._repetitions[0]
            owed = self._owed.get(producer)
            if owed is not None and owed.in_flight.get(commit_log_offset) == asked_ms:
                return due_ms
            heappop(self._repetitions)  # The check was already answered.
        return None

    def take_repetitions(self, now_ms: int, limit: int) -> Iterator[tuple[Producer, int]]:
        """Yields at most `limit` pairs of a producer and a transaction whose check must be repeated now.

        Schedules the next repetition of each of these checks.
        """
        for _ in range(limit):
            if not self._repetitions or self._repetitions[0][0] > now_ms:
                return
            _, _, producer, commit_log_offset, asked_ms, wait_ms = heappop(self._repetitions)
            owed = self._owed.get(producer)
            if owed is None or owed.in_flight.get(commit_log_offset) != asked_ms:
                continue
            may_hang = owed.answered_ms is None or owed.answered_ms < asked_ms
            is_repeated = not may_hang or next(iter(owed.in_flight)) == commit_log_offset
            next_wait_ms = min(2 * wait_ms, self._max_wait_ms) if is_repeated else wait_ms
            self._repeat_later(producer, commit_log_offset, asked_ms, now_ms, next_wait_ms)
            if is_repeated:
                yield producer, commit_log_offset

    def repeated_by(self, producer: Producer, commit_log_offset: int, now_ms: int) -> None:
        """Records that another producer's unanswered check was also sent to this producer. The check is not counted again."""
        owed = self._owed.setdefault(producer, _Owed())
        if commit_log_offset not in owed.in_flight:
            owed.in_flight[commit_log_offset] = now_ms
            owed.uncounted.add(commit_log_offset)
        self.changes += 1

    def _repeat_later(self, producer: Producer, commit_log_offset: int, asked_ms: int, now_ms: int, wait_ms: int) -> None:
        self._number += 1
        heappush(self._repetitions, (now_ms + wait_ms, self._number, producer, commit_log_offset, asked_ms, wait_ms))

    def answered(self, producer: Producer, commit_log_offset: int, now_ms: int | None = None) -> None:
        """Records a producer's answer, which may be UNKNOWN.

        The answer shows that the producer works, so its overdue checks are dropped.
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
        """Returns the time in milliseconds of the transaction's oldest check in flight to these producers, or None."""
        since = [
            owed.in_flight[commit_log_offset]
            for owed in map(self._owed.get, producers)
            if owed is not None and commit_log_offset in owed.in_flight
        ]
        return min(since, default=None)

    def is_silent(self, producer: Producer) -> bool:
        """Returns True if a check of the producer has timed out, and the producer has not answered any check since."""
        owed = self._owed.get(producer)
        return owed is not None and bool(owed.overdue)

    def departed(self, producer: Producer) -> Mapping[int, int]:
        """Removes a disconnected producer. Returns the number of its unanswered checks for each transaction."""
        owed = self._owed.pop(producer, None)
        if owed is None:
            return {}
        self.changes += 1
        return _unanswered([owed])

    def unanswered(self) -> Mapping[int, int]:
        """Returns the number of unanswered checks for each transaction."""
        return _unanswered(self._owed.values())

    def unanswered_about(self, commit_log_offset: int) -> int:
        """Returns the number of unanswered checks of the transaction."""
        return sum(
            owed.overdue.get(commit_log_offset, 0)
            + (commit_log_offset in owed.in_flight and commit_log_offset not in owed.uncounted)
            for owed in self._owed.values()
        )

    def count(self, producer: Producer) -> int:
        """Returns the number of the producer's checks in flight. Overdue checks are not included."""
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
