"""Decides whether a refusal is the fault of the order, or of a database whose rule refuses everything.

An order is to blame only if another order of its kind was written after the refusal, and the database then refuses this one
again. Until then the database is to blame: the orders are held, and one of them is retried now and then. Orders that occupy all
threads, so that no other could pass, give way: they come again later without spending a redelivery (docs/decisions, 0052).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, Protocol

from service_runtime.database.database_errors import DatabaseFailure
from service_runtime.failing.holds import HeldBatch, HoldCause, Holds
from service_runtime.failing.trying_again import pause_s

SETTLED_S: Final = 60.0
"""A write that began before a refusal has ended by then: no statement takes longer, nor does a transaction stay idle so long."""
_SLICE_S: Final = 1.0
"""The longest delay before a pause notices that an order passes."""


class RefusalVerdict(Enum):
    """The verdict on an order that stays refused."""

    BLAMED = auto()
    """Another one was written after the first refusal, and this one was refused again: it is its own fault."""
    GIVES_WAY = auto()
    """Nobody knows yet; it left its thread to others, and is to come again without a redelivery being spent."""


class Elsewhere(Protocol):
    """The writes of other processes to the same database. Each method raises DatabaseFailure."""

    def last_written(self) -> int:
        """Returns the number of the last row."""

    def is_written_after(self, number: int, kind: str) -> bool:
        """Returns whether an order has a row with a higher number, of this kind of write."""


@dataclass(frozen=True, slots=True)
class Doubts:
    """Decides about refused orders, for the threads of a consumer."""

    holds: Holds
    threads: int
    """How many threads write at a time."""
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
        """Returns the verdict on each order that stays refused, once no doubt is left.

        `refused` are positions; `try_again` writes some of them, and returns those that are refused again. Errors of `try_again`
        and `wait` pass through.
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
                    # One alone proves as much as all: a database that refuses everything gets few requests.
                    probe = left[tries % len(left)]
                    if not try_again([probe], held):
                        left.remove(probe)
        return verdicts

    def _pause(self, witness: "_Witness", seconds: float, wait: Callable[[float], None]) -> None:
        """Pauses. Ends early when another order passes."""
        while seconds > 0 and not witness.has_seen_another():
            wait(min(seconds, _SLICE_S))
            seconds -= _SLICE_S


class _Witness:
    """Looks for another order written after this moment, by this process or others."""

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
        """Asks the database after SETTLED_S: a row visible then is not from a transaction begun before the refusal."""
        elsewhere, now_s = self._doubts.elsewhere, self._doubts.now_s()
        if elsewhere is None or now_s - self._began_s < SETTLED_S or now_s - self._looked_s < pause_s(30):
            return False
        self._looked_s = now_s
        try:
            before, self._number = self._number, elsewhere.last_written()
            return before is not None and elsewhere.is_written_after(before, self._kind)
        except DatabaseFailure:
            return False
