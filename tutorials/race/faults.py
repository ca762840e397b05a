"""Defines the faults, and a plan of the points where each strikes. The plan depends only on the seed, not on the way."""

import random
from collections import Counter
from enum import Enum
from typing import Final

ONE_IN: Final = 5
"""A fault strikes one in this many points."""
BLOCK: Final = 10
"""Number of orders for which the broker is down."""


class Fault(Enum):
    """A fault of a cell."""

    NONE = "none"
    DIES_BEFORE_COMMIT = "dies-before-commit"
    DIES_AFTER_COMMIT = "dies-after-commit"
    DATABASE_REFUSES = "database-refuses"
    ANSWER_LOST = "answer-lost"
    COMMIT_LOST = "commit-lost"
    BROKER_DOWN = "broker-down"
    SLOW_COMMIT = "slow-commit"
    CONSUMER_DIES = "consumer-dies"
    REDIS_EMPTIED = "redis-emptied"
    RESTART_OF_ALL = "restart-of-all"

    @property
    def title(self) -> str:
        """The fault's title."""
        return _TITLES[self]

    @property
    def heading(self) -> str:
        """The short title for a column's heading."""
        return _HEADINGS.get(self) or self.value.replace("-", " ")


_TITLES: Final = {
    Fault.NONE: "no fault",
    Fault.DIES_BEFORE_COMMIT: "process dies before the database commit",
    Fault.DIES_AFTER_COMMIT: "process dies after the database commit",
    Fault.DATABASE_REFUSES: "database refuses the commit",
    Fault.ANSWER_LOST: "answer to the send is lost",
    Fault.COMMIT_LOST: "COMMIT is lost",
    Fault.BROKER_DOWN: "broker is down",
    Fault.SLOW_COMMIT: "database commit comes later than the check-back",
    Fault.CONSUMER_DIES: "consumer dies before it acknowledges",
    Fault.REDIS_EMPTIED: "Redis is emptied while a task waits in it",
    Fault.RESTART_OF_ALL: "everything is killed and restarted",
}
_HEADINGS: Final = {Fault.COMMIT_LOST: "COMMIT lost", Fault.REDIS_EMPTIED: "Redis emptied"}


class FaultPlan:
    """Decides at each point of a run whether the cell's fault strikes."""

    def __init__(self, seed: int, fault: Fault, slow_commit_s: tuple[float, float]) -> None:
        """Plans with the same seed and fault make the same decisions.

        `slow_commit_s` has the shortest and the longest time of a slow local transaction.
        """
        self.fault = fault
        self.struck = 0
        """The number of its strikes so far."""
        self._seed = seed
        self._slow_commit_s = slow_commit_s
        self._visits: Counter[str] = Counter()
        self._is_over = False

    def strikes(self, fault: Fault, point: str) -> bool:
        """Returns whether the fault strikes at this point. A second call for the same point decides again."""
        if fault is not self.fault or self._is_over:
            return False
        self._visits[point] += 1
        does_strike = self._chance(f"{point}/{self._visits[point]}").random() < 1 / ONE_IN
        self.struck += does_strike
        return does_strike

    def is_broker_down(self, number: int) -> bool:
        """Returns whether the broker is down while the order with this number is placed."""
        block = f"block {number // BLOCK}"
        return self.fault is Fault.BROKER_DOWN and self._chance(block).random() < 1 / ONE_IN

    def delay_s(self, point: str) -> float:
        """Returns the extra time of the local transaction at this point."""
        return self._chance(f"{point}/delay").uniform(*self._slow_commit_s) if self.strikes(Fault.SLOW_COMMIT, point) else 0.0

    def is_before_commit(self, point: str) -> bool:
        """Returns whether all processes die before the database commit. Otherwise they die after it."""
        return self._chance(f"{point}/when").random() < 0.5

    def end(self) -> None:
        """Ends the faults."""
        self._is_over = True

    def _chance(self, point: str) -> random.Random:
        return random.Random(f"{self._seed}/{self.fault.value}/{point}")
