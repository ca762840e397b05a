"""The faults, and a plan that decides where they occur. The plan depends on the seed and the fault, not on the approach."""

import random
from collections import Counter
from enum import Enum
from typing import Final

ONE_IN: Final = 5
"""The fault occurs at one in ONE_IN points on average."""
BLOCK: Final = 10
"""The number of consecutive orders for which the broker stays down."""


class Fault(Enum):
    """A fault under which the approaches run."""

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
        """The description of the fault."""
        return _TITLES[self]

    @property
    def heading(self) -> str:
        """The short description for a column's heading."""
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
    """Decides at each point of a run whether the run's fault occurs. A point is a text such as an order's id."""

    def __init__(self, seed: int, fault: Fault, slow_commit_s: tuple[float, float]) -> None:
        """Creates a plan. Plans with the same seed and fault make the same decisions.

        `slow_commit_s` contains the shortest and the longest duration of a slow local transaction in seconds.
        """
        self.fault = fault
        self.struck = 0
        """The number of times that the fault has occurred so far."""
        self._seed = seed
        self._slow_commit_s = slow_commit_s
        self._visits: Counter[str] = Counter()
        self._is_over = False

    def strikes(self, fault: Fault, point: str) -> bool:
        """Returns True if `fault` occurs at this point. A second call for the same point makes a new decision."""
        if fault is not self.fault or self._is_over:
            return False
        self._visits[point] += 1
        does_strike = self._chance(f"{point}/{self._visits[point]}").random() < 1 / ONE_IN
        self.struck += does_strike
        return does_strike

    def is_broker_down(self, number: int) -> bool:
        """Returns True if the broker is down while order `number` is placed."""
        block = f"block {number // BLOCK}"
        return self.fault is Fault.BROKER_DOWN and self._chance(block).random() < 1 / ONE_IN

    def delay_s(self, point: str) -> float:
        """Returns the additional duration of the local transaction at this point, in seconds."""
        return self._chance(f"{point}/delay").uniform(*self._slow_commit_s) if self.strikes(Fault.SLOW_COMMIT, point) else 0.0

    def is_before_commit(self, point: str) -> bool:
        """Returns True if all processes die before the database commit at this point, and False if they die after it."""
        return self._chance(f"{point}/when").random() < 0.5

    def end(self) -> None:
        """Ends the faults. Afterwards `strikes` returns False."""
        self._is_over = True

    def _chance(self, point: str) -> random.Random:
        return random.Random(f"{self._seed}/{self.fault.value}/{point}")
