"""Tracks the messages that a consumer holds, the cause, and the successful writes. A held message is kept in memory and retried.

The log and /healthz report the holds. The successful writes show whether the cause is an outage or single messages.
"""

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Final, Protocol, Self

REMIND_AFTER_S: Final = 300.0
ASIDE_S: Final = 60.0
"""The delay in seconds after which the broker redelivers postponed orders; see `Holds.is_in_the_way`."""
_MIN_TRIES: Final = 6
"""The number of tries, which take about 25 s, after which orders are first postponed."""
_MAX_TRIES: Final = 60
"""The maximum number of tries, which take about ten minutes, before orders are postponed."""

logger = logging.getLogger(__name__)


class HoldCause(StrEnum):
    """The cause of a hold. If several causes are present, the first of them is reported."""

    OUTAGE = "outage"
    """A dependency is unavailable. The orders are not the cause."""
    REFUSAL = "refusal"
    """The database refuses the order. The cause is the order, or a rule that refuses all orders."""
    SUSPICION = "suspicion"
    """The order's task fails. The cause is the order, or an outage that was not recognized."""


@dataclass(frozen=True, slots=True)
class Holding:
    """The held messages at one moment."""

    orders: int
    batches: int
    held_for_s: float
    """The time in seconds since which at least one message has been held."""
    reason: str
    """The reason of the latest failure."""
    cause: HoldCause

    @property
    def is_outage(self) -> bool:
        """True if a dependency is unavailable, or if the database refuses several orders and has accepted none since."""
        return self.cause is HoldCause.OUTAGE or (self.cause is HoldCause.REFUSAL and self.orders > 1)


class HasHolding(Protocol):
    """The interface that returns the held messages."""

    def state(self) -> Holding | None:
        """Returns the messages that are held now, or None if there are none."""


@dataclass(frozen=True, slots=True)
class NoOutage:
    """A readiness check that fails while an outage holds messages. It uses the real writes, in addition to the trial writes."""

    holds: HasHolding

    def why_unready(self) -> str | None:
        """Returns the duration and the reason of an outage that holds messages; None if there is no such outage."""
        holding = self.holds.state()
        if holding is None or not holding.is_outage:
            return None
        return f"{holding.orders} are held, for {holding.held_for_s:.0f} s now: {holding.reason}"


class Holds:
    """Counts the held messages of all threads. Logs the first hold, a reminder every five minutes, and the end. Thread-safe.

    Each write has a kind. A write passes if it adds a new row; an existing row proves nothing. A moment is an increasing number.
    If a write began after the moment of a refusal and passed, the database accepts writes of that kind.
    """

    def __init__(self, *, now_s: Callable[[], float]) -> None:
        """`now_s` is a monotonic clock in seconds."""
        self._now_s = now_s
        self._lock = threading.Lock()
        self._held: dict[HeldBatch, HoldCause] = {}
        self._began_s = self._reminded_s = 0.0
        self._reason = ""
        self._orders_ever = self._orders_left = 0
        self._moment = 0
        self._passed: Counter[str] = Counter()
        self._latest: dict[str, int] = {}
        self._ways_given = 0
        self._aside: deque[tuple[float, int, HoldCause]] = deque()

    def moment(self) -> int:
        """Returns a number greater than all earlier ones."""
        with self._lock:
            self._moment += 1
            return self._moment

    def passed(self, kind: str) -> int:
        """Returns the number of writes of this kind that have passed. The number never decreases."""
        return self._passed[kind]

    def has_passed(self, kind: str, began: int | None = None) -> None:
        """Records that a write of this kind has added a new row. `began` is the moment at which the write began."""
        with self._lock:
            self._passed[kind] += 1
            self._latest[kind] = max(self._latest.get(kind, 0), self._moment if began is None else began)
            self._ways_given = 0
            self._aside.clear()

    def has_passed_since(self, kind: str, moment: int) -> bool:
        """Returns True if a write of this kind began after the moment and passed."""
        return self._latest.get(kind, 0) > moment

    def is_in_the_way(self, tries: int, threads: int) -> bool:
        """Returns True if orders must be postponed after this number of tries, so that other orders can use their thread.

        That is the case if all threads hold orders that may be the cause of their failure. While nothing passes, orders are
        postponed less and less often: first after 25 s of tries, finally after ten minutes.
        """
        with self._lock:
            patience = min(_MIN_TRIES + self._ways_given // threads, _MAX_TRIES)
            in_doubt = sum(cause is not HoldCause.OUTAGE for batch, cause in self._held.items() if not batch.is_counted_without)
            return in_doubt >= threads and tries >= patience

    def gave_way(self, orders: int, cause: HoldCause) -> None:
        """Records orders that were postponed. They count as held until the broker redelivers them after ASIDE_S."""
        with self._lock:
            self._ways_given += 1
            self._orders_left += orders
            self._aside.append((self._now_s(), orders, cause))

    def batch(self, orders: int, within: "HeldBatch | None" = None) -> "HeldBatch":
        """Returns a context manager for a batch that may be held. `within` is a held batch that contains it."""
        return HeldBatch(self, orders, within)

    def state(self) -> Holding | None:
        """Returns the messages that are held now, or None if there are none."""
        with self._lock:
            self._forget_what_came_again()
            return self._state() if self._held or self._aside else None

    def hold(self, batch: "HeldBatch", cause: HoldCause, reason: str) -> None:
        """Marks the batch as held, or updates the cause and the reason."""
        with self._lock:
            now_s, is_first = self._now_s(), not self._held
            if batch not in self._held and not batch.is_counted_without:
                self._orders_ever += batch.orders
            self._held[batch] = cause
            self._reason = reason
            if is_first:
                self._began_s = self._reminded_s = now_s
                logger.warning(
                    "%d orders are held: %s. They are retried until they succeed; none is lost, and no redelivery is used up",
                    batch.orders, reason,
                )  # fmt: skip
            elif now_s - self._reminded_s >= REMIND_AFTER_S:
                self._reminded_s = now_s
                state = self._state()
                logger.warning("%d orders are still held after %s: %s", state.orders, _duration(state.held_for_s), reason)

    def end(self, batch: "HeldBatch", *, is_left: bool) -> None:
        """Ends the hold of a batch. `is_left` is True if the orders are redelivered to another consumer."""
        with self._lock:
            if self._held.pop(batch, None) is None:
                return
            self._orders_left += batch.orders if is_left and not batch.is_counted_without else 0
            if not self._held:
                held_for = _duration(self._now_s() - self._began_s)
                logger.warning(
                    "no order is held any more after %s: %d orders were held, and %d of them will be redelivered",
                    held_for, self._orders_ever, self._orders_left,
                )  # fmt: skip
                self._orders_ever = self._orders_left = 0

    def _state(self) -> Holding:
        counted = [batch for batch in self._held if not batch.is_counted_without]
        causes = {*self._held.values(), *(cause for _, _, cause in self._aside)}
        return Holding(
            orders=sum(batch.orders for batch in counted) + sum(orders for _, orders, _ in self._aside),
            batches=len(counted),
            held_for_s=self._now_s() - self._began_s,
            reason=self._reason,
            cause=next(cause for cause in HoldCause if cause in causes),
        )

    def _forget_what_came_again(self) -> None:
        while self._aside and self._now_s() - self._aside[0][0] > ASIDE_S:
            self._aside.popleft()


class HeldBatch:
    """A batch in one thread. It is held from the first call of `hold` until the end of the `with` block."""

    __slots__ = ("_holds", "is_counted_without", "is_held", "orders")

    def __init__(self, holds: Holds, orders: int, within: "HeldBatch | None" = None) -> None:
        """See `Holds.batch` for the arguments."""
        self._holds = holds
        self.orders = orders
        self.is_counted_without = within is not None
        self.is_held = self.is_counted_without

    def hold(self, cause: HoldCause, reason: str) -> None:
        """Marks the batch as held."""
        self.is_held = True
        self._holds.hold(self, cause, reason)

    def __enter__(self) -> Self:
        """Returns the batch, which is not held yet."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Ends the hold."""
        self._holds.end(self, is_left=error is not None)


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
