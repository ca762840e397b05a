"""Decides whether the cause of a refusal is the order, or a database rule that refuses every order.

The order is the cause only if another order of its kind was written after the refusal, and the database then refuses this order
again. Until then the orders are held, and one of them is retried after each pause. If held orders occupy all threads, so that no
other order could be written, they are postponed: they are redelivered later, and the redelivery is not counted
(docs/decisions, 0052).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, Protocol

from service_runtime.database.database_errors import DatabaseFailure
from service_runtime.failing.holds import HeldBatch, HoldCause, Holds
from service_runtime.failing.trying_again import pause_s

SETTLED_S: Final = 60.0
"""The time in seconds after a refusal by which all writes that began before the refusal have ended.

No statement takes longer, and no transaction stays idle for longer.
"""
_SLICE_S: Final = 1.0
"""The interval in seconds at which a pausing thread checks whether another order was written."""


class RefusalVerdict(Enum):
    """The verdict on an order that is still refused."""

    BLAMED = auto()
    """The order is the cause: another order was written after the first refusal, and this order was refused again."""
    GIVES_WAY = auto()
    """The cause is not known yet. The order is redelivered later, so that others can use its thread. This is not counted."""


class Elsewhere(Protocol):
    """The writes of other processes to the same database. All methods raise DatabaseFailure."""

    def last_written(self) -> int:
        """Returns the number of the last row that was written."""

    def is_written_after(self, number: int, kind: str) -> bool:
        """Returns True if an order has a row of this kind with a higher number."""


@dataclass(frozen=True, slots=True)
class Doubts:
    """Decides about refused orders for all threads of a consumer."""

    holds: Holds
    threads: int
    """The number of threads that write at the same time."""
    now_s: Callable[[], float]
    elsewhere: Elsewhere | None = None

    def settle(
        self,
        refused: Sequence[int],
        kind: str,
        reason: str,
        try_again: Callable[[Sequence[int], HeldBatch], Sequence[int]],
        wait: Callable[[float], None],
    ) -> dict[int, RefusalVerdict]:
        """Retries refused orders until a verdict is possible. Returns the verdict on each order that is still refused.

        `refused` are the orders' positions. `try_again` writes the orders at some positions, and returns the positions that are
        refused again. Raises the errors of `try_again` and `wait`.
        """
        verdicts: dict[int, RefusalVerdict] = {}
        left = list(refused)
        witness = _Witness(self, kind)
        tries = 0
        with self.holds.batch(len(left)) as held:
            while left:
                held.orders = len(left)
                held.hold(HoldCause.REFUSAL, reason)
                if witness.has_seen_another():
                    verdicts |= dict.fromkeys(try_again(left, held), RefusalVerdict.BLAMED)
                    break
                if self.holds.is_in_the_way(tries, self.threads):
                    self.holds.gave_way(len(left), HoldCause.REFUSAL)
                    verdicts |= dict.fromkeys(left, RefusalVerdict.GIVES_WAY)
                    break
                tries += 1
                self._pause(witness, pause_s(tries), wait)
                if not witness.has_seen_another():
                    # One order is enough for this test, and it limits the requests to a database that refuses everything.
                    probe = left[tries % len(left)]
                    if not try_again([probe], held):
                        left.remove(probe)
        return verdicts

    def _pause(self, witness: "_Witness", seconds: float, wait: Callable[[float], None]) -> None:
        """Pauses for a number of seconds. Ends early if another order is written."""
        while seconds > 0 and not witness.has_seen_another():
            wait(min(seconds, _SLICE_S))
            seconds -= _SLICE_S


class _Witness:
    """Checks whether this process or another one has written an order since this object was created."""

    def __init__(self, doubts: Doubts, kind: str) -> None:
        self._doubts = doubts
        self._kind = kind
        self._moment = doubts.holds.moment()
        self._began_s = self._looked_s = doubts.now_s()
        self._number: int | None = None
        self._has_seen = False

    def has_seen_another(self) -> bool:
        if not self._has_seen:
            self._has_seen = self._doubts.holds.has_passed_since(self._kind, self._moment) or self._has_seen_one_elsewhere()
        return self._has_seen

    def _has_seen_one_elsewhere(self) -> bool:
        """Queries the database for orders of other processes, at the earliest SETTLED_S after the start.

        A row that becomes visible after that time belongs to a transaction that began after the refusal.
        """
        elsewhere, now_s = self._doubts.elsewhere, self._doubts.now_s()
        if elsewhere is None or now_s - self._began_s < SETTLED_S or now_s - self._looked_s < pause_s(30):
            return False
        self._looked_s = now_s
        try:
            before, self._number = self._number, elsewhere.last_written()
            return before is not None and elsewhere.is_written_after(before, self._kind)
        except DatabaseFailure:
            return False
