"""The faults of a simulated database."""

import sqlite3
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from rocketmq_broker.testing.simulation.upcoming import Upcoming
from rocketmq_broker.world import Chance

Die = Callable[[], object]
"""A function that kills the process that is using the database."""

_LOCKED: Final = "database is locked"
_BROKEN: Final = "disk I/O error"


class CommitOutcome(StrEnum):
    """The outcome of a database commit."""

    IS_DONE = "done"
    LOSES_ANSWER = "done, and its answer is lost"
    IS_LOST = "not done, and the connection breaks"


@dataclass
class DyingStep:
    """A plan to kill a process at one of its next database steps."""

    is_before: bool
    die: Die | None
    """If it is None, only the process that executes the step is killed, which may be a child of the program."""
    is_over: Callable[[], bool]
    """Returns True if the fault has ended. A step that has waited until then no longer kills the process."""


Deaths = defaultdict[str, Upcoming[DyingStep]]
"""The planned deaths of each process, keyed by the process's name and counted by its statements and database commits."""


def new_deaths() -> Deaths:
    """Returns a collection without planned deaths."""
    return defaultdict(Upcoming)


@dataclass
class DatabaseFaults:
    """The current faults of one database. Faults with a duration end at a given simulated time."""

    now_s: Callable[[], float]
    chance: Chance
    fired: Callable[[str], object]
    """Called when a fault has an effect, with one of these words:

    refuse, hang, lost_answer, locked, kill, kill_child.
    """
    deaths: Deaths = field(default_factory=new_deaths)
    """The planned deaths of processes. Databases that share this collection count the steps of a process together."""
    _refuses_until_s: float = 0.0
    _refusal_rate: float = 0.0
    _hangs_until_s: float = 0.0
    _hangs_left: int | None = None
    _hang_s: float = 0.0
    _outcomes: Upcoming[CommitOutcome] = field(default_factory=Upcoming)

    def refuse(self, for_s: float, rate: float = 1.0) -> None:
        """Refuses statements with the probability `rate`. If calls overlap, the latest end and the latest rate apply."""
        self._refuses_until_s = max(self._refuses_until_s, self.now_s() + for_s)
        self._refusal_rate = rate

    def hang(self, for_s: float) -> None:
        """Delays all statements until `for_s` seconds have passed. If calls overlap, the latest end applies."""
        self._hangs_until_s = max(self._hangs_until_s, self.now_s() + for_s)

    def hang_statements(self, count: int, for_s: float) -> None:
        """Delays each of the next `count` statements by `for_s` seconds."""
        self._hangs_left, self._hang_s = count, for_s

    def lose_answer(self, nth: int = 1) -> None:
        """Stores the `nth` database commit from now, but breaks its connection before the process receives the result."""
        self._outcomes.add(nth, CommitOutcome.LOSES_ANSWER)

    def lose_commit(self, nth: int = 1) -> None:
        """Breaks the connection of the `nth` database commit from now, and does not store the commit."""
        self._outcomes.add(nth, CommitOutcome.IS_LOST)

    def die_at(
        self, process: str, nth: int, die: Die | None, *, is_before: bool, is_over: Callable[[], bool] = lambda: False
    ) -> None:
        """Kills the process before or after its `nth` statement or database commit from now.

        `die` kills the whole program. If it is None, only the process that executes the step is killed, which may be a
        child of the program. A kill after the step is omitted if `is_over` returns True by then.
        """
        self.deaths[process].add(nth, DyingStep(is_before, die, is_over))

    def end_all(self) -> None:
        """Ends all faults, including pending ones."""
        self._refuses_until_s = self._hangs_until_s = 0.0
        self._hangs_left = None
        self._outcomes.clear()
        self.deaths.clear()

    # The following methods are called at each step.

    def hang_ends_s(self) -> float | None:
        """Returns the time at which a statement that starts now can continue. Returns None if the statement need not wait."""
        if self._hangs_left:
            self._hangs_left -= 1
            self.fired("hang")
            return self.now_s() + self._hang_s
        if self.now_s() < self._hangs_until_s:
            self.fired("hang")
            return self._hangs_until_s
        return None

    def is_refused(self) -> bool:
        """Returns True if a statement that starts now is refused."""
        if self.now_s() >= self._refuses_until_s:
            return False
        if self._refusal_rate < 1 and self.chance.random() >= self._refusal_rate:
            return False
        self.fired("refuse")
        return True

    def outcome_of_commit(self) -> CommitOutcome:
        """Returns the outcome of the current commit."""
        due = self._outcomes.occur()
        if not due:
            return CommitOutcome.IS_DONE
        self.fired("lost_answer")
        return due[0]

    def deaths_of(self, process: str) -> list[DyingStep]:
        """Counts a step of the process. Returns the planned deaths of the process at this step."""
        return self.deaths[process].occur() if process in self.deaths else []


def broken_connection() -> sqlite3.OperationalError:
    """Returns the driver's error for a broken connection."""
    return _error(_BROKEN, "SQLITE_IOERR", sqlite3.SQLITE_IOERR)


def locked() -> sqlite3.OperationalError:
    """Returns the driver's error for a lock that is held too long."""
    return _error(_LOCKED, "SQLITE_BUSY", sqlite3.SQLITE_BUSY)


def _error(text: str, name: str, code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorname, error.sqlite_errorcode = name, code
    return error
