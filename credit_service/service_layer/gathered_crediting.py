"""Combines the credits of several threads into one task (group commit).

A Celery task takes several times as long as its database transaction, and hardly longer for ten orders than for one.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from credit_service.domain.credit import Credit, CreditOutcome
from credit_service.service_layer.crediting import Crediting, CreditingFailed, CreditingUnavailable
from rocketmq_broker.world import World

PATIENCE_S: Final = 0.1
"""The maximum time in seconds that credits wait for the running task, and the maximum time that they wait for other credits.

The limit is needed because a task may hang, or may be delayed by one bad order.
"""
_REST_PER_TASK: Final = 3
"""The pause after a task as a multiple of the task's duration. Credits are combined during the pause."""
_MAX_TASK_S: Final = 3_900.0
"""The maximum time in seconds that a thread waits for the task of a combined batch.

It is longer than CREDIT_TASK_TIMEOUT_S may be, including the requests to Redis.
"""


@dataclass(slots=True, eq=False)
class _BroughtCredits:
    """The credits of one thread, and the result of writing them."""

    credits: Sequence[Credit]
    is_taken: bool = False
    outcomes: list[CreditOutcome | None] = field(default_factory=list)
    error: Exception | None = None
    is_done: bool = False


class GatheredCrediting:
    """Combines the first attempts of several threads into batches (`service_layer.crediting.Crediting`). Thread-safe.

    Credits are sent at once if the waiting credits fill a batch, or if no task runs and the pause after the last one is over. The
    pause is three times the task's duration. Otherwise the credits wait for the end of the task and of the pause, at most
    PATIENCE_S for each. So tasks take at most a quarter of the time, and batches grow with the load.

    If a combined batch fails, each thread retries its own credits alone, so that a bad order does not affect other threads. If a
    combined batch is not answered, each thread gets that error, and its retry is not combined.
    """

    def __init__(self, crediting: Crediting, world: World, *, batch_size: int) -> None:
        """`crediting` writes the batches. A batch has at most `batch_size` credits, all of one kind."""
        self._crediting = crediting
        self._acquire = world.acquire
        self._steady_ns = world.steady_ns
        self._batch_size = batch_size
        self._changed = threading.Condition()
        self._waiting: list[_BroughtCredits] = []
        self._under_way = 0
        self._rests_until_ns = 0

    def credit(self, credits: Sequence[Credit], *, is_again: bool, is_given_up: Callable[[], bool]) -> list[CreditOutcome | None]:
        """Returns one outcome for each credit. All credits must be of one kind. A retry (`is_again`) is not combined."""
        alone = partial(self._crediting.credit, credits, is_again=is_again, is_given_up=is_given_up)
        if is_again:
            return alone()
        place = _BroughtCredits(credits)
        with self._changed:
            self._waiting.append(place)
        self._wait_until(lambda: place.is_taken or self._may_go(), PATIENCE_S)
        rest_s = (self._rests_until_ns - self._steady_ns()) / 1e9
        if rest_s > 0:
            self._wait_until(lambda: place.is_taken or self._is_full(), rest_s)
        gathered = self._gather(place)
        if gathered:
            self._write(gathered, is_given_up)
        elif not self._wait_until(lambda: place.is_done, _MAX_TASK_S):
            raise CreditingUnavailable("the shared batch of these credits has not ended")
        if place.error is None:
            return place.outcomes
        if isinstance(place.error, CreditingFailed) and len(gathered) != 1:
            return alone()
        raise type(place.error)(str(place.error)) from place.error

    def _may_go(self) -> bool:
        return not self._under_way or self._is_full()

    def _is_full(self) -> bool:
        return sum(len(place.credits) for place in self._waiting) >= self._batch_size

    def _gather(self, first: _BroughtCredits) -> list[_BroughtCredits]:
        """Removes `first`, and other credits of its kind that fit into the same batch, from the waiting list. Returns them.

        Returns an empty list if another thread has already removed `first`.
        """
        with self._changed:
            if first.is_taken:
                return []
            gathered, room = [first], self._batch_size - len(first.credits)
            for place in self._waiting:
                if place is not first and len(place.credits) <= room and place.credits[0].kind is first.credits[0].kind:
                    gathered.append(place)
                    room -= len(place.credits)
            for place in gathered:
                place.is_taken = True
                self._waiting.remove(place)
            self._under_way += 1
            return gathered

    def _write(self, gathered: Sequence[_BroughtCredits], is_given_up: Callable[[], bool]) -> None:
        """Writes the credits in one batch, and stores each thread's outcomes or the error."""
        credits = [credit for place in gathered for credit in place.credits]
        error: Exception | None = CreditingUnavailable("the shared batch of these credits was not written")
        outcomes: list[CreditOutcome | None] = []
        began_ns = self._steady_ns()
        try:
            outcomes, error = self._crediting.credit(credits, is_again=False, is_given_up=is_given_up), None
        except (CreditingFailed, CreditingUnavailable) as failure:
            error = failure
        finally:
            with self._changed:
                self._under_way -= 1
                ended_ns = self._steady_ns()
                self._rests_until_ns = ended_ns + min(_REST_PER_TASK * (ended_ns - began_ns), int(PATIENCE_S * 1e9))
                for place in gathered:
                    place.outcomes, outcomes = outcomes[: len(place.credits)], outcomes[len(place.credits) :]
                    place.error, place.is_done = error, True
                self._changed.notify_all()

    def _wait_until(self, is_so: Callable[[], bool], timeout_s: float) -> bool:
        if self._acquire is not None:
            return self._acquire(is_so, timeout_s)
        with self._changed:
            return self._changed.wait_for(is_so, timeout_s)
