"""Which orders are held now, and why: for the log, for /healthz, and to tell a bad order from an outage."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from credit_service.service_layer.faults import Fault

REMIND_AFTER_S: Final = 300.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Holding:
    """What is held at one moment."""

    orders: int
    batches: int
    held_for_s: float
    """Since something is held without a break."""
    reason: str
    """Of the failure that was seen last."""
    is_outage: bool
    """Whether an outage holds any order; else all are held on a suspicion against single orders."""


class Holds:
    """Counts what is held by all threads; logs when holding begins, every five minutes, and when it ends. Safe for threads."""

    def __init__(self, *, now_s: Callable[[], float] = time.monotonic) -> None:
        """`now_s` is a clock that is never set back."""
        self._now_s = now_s
        self._lock = threading.Lock()
        self._held: dict[HeldBatch, Fault] = {}
        self._began_s = self._reminded_s = 0.0
        self._reason = ""
        self._orders_ever = self._orders_left = 0
        self._passed = 0

    @property
    def passed(self) -> int:
        """How many tasks have succeeded; it only grows."""
        return self._passed

    @property
    def suspected(self) -> int:
        """How many batches are held under suspicion."""
        with self._lock:
            return sum(fault is Fault.SUSPECT for fault in self._held.values())

    def batch(self, orders: int) -> "HeldBatch":
        """A batch that may have to be held; a context manager."""
        return HeldBatch(self, orders)

    def has_passed(self) -> None:
        """A task has succeeded."""
        with self._lock:
            self._passed += 1

    def state(self) -> Holding | None:
        """What is held now; None if nothing is."""
        with self._lock:
            return self._state() if self._held else None

    def hold(self, batch: "HeldBatch", fault: Fault, reason: str) -> None:
        """The batch is held, or held further."""
        with self._lock:
            now_s, is_first = self._now_s(), not self._held
            if batch not in self._held:
                self._orders_ever += batch.orders
            self._held[batch] = fault
            self._reason = reason
            if is_first:
                self._began_s = self._reminded_s = now_s
                logger.warning(
                    "%d orders are held: %s. They are tried again until it works; none is lost and no redelivery is spent",
                    batch.orders, reason,
                )  # fmt: skip
            elif now_s - self._reminded_s >= REMIND_AFTER_S:
                self._reminded_s = now_s
                state = self._state()
                logger.warning("%d orders are held still, after %s: %s", state.orders, _duration(state.held_for_s), reason)

    def end(self, batch: "HeldBatch", *, is_left: bool) -> None:
        """The batch is not held any more; `is_left` if its orders are left to whoever gets them next."""
        with self._lock:
            if self._held.pop(batch, None) is None:
                return
            self._orders_left += batch.orders if is_left else 0
            if not self._held:
                held_for = _duration(self._now_s() - self._began_s)
                logger.warning(
                    "no order is held any more, after %s: %d orders were, %d of them are left to be delivered again",
                    held_for, self._orders_ever, self._orders_left,
                )  # fmt: skip
                self._orders_ever = self._orders_left = 0

    def _state(self) -> Holding:
        return Holding(
            orders=sum(batch.orders for batch in self._held),
            batches=len(self._held),
            held_for_s=self._now_s() - self._began_s,
            reason=self._reason,
            is_outage=Fault.OUTAGE in self._held.values(),
        )


class HeldBatch:
    """One batch in one thread's hands: held from its first `hold` to the end of the block."""

    __slots__ = ("_holds", "is_held", "orders")

    def __init__(self, holds: Holds, orders: int) -> None:
        """See `Holds.batch`."""
        self._holds = holds
        self.orders = orders
        self.is_held = False

    def hold(self, fault: Fault, reason: str) -> None:
        """It has to wait."""
        self.is_held = True
        self._holds.hold(self, fault, reason)

    def __enter__(self) -> Self:
        """Not held yet."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Not held any more."""
        self._holds.end(self, is_left=error is not None)


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
