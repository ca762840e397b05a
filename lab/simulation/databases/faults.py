"""What goes wrong with a simulated database."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from lab.simulation.databases.rules import OrderRule, RuledRow
from rocketmq_broker.world import Chance

Die = Callable[[], object]
"""Kills the process that is just working with the database."""

_LOCKED: Final = "database is locked"
_BROKEN: Final = "disk I/O error"


class CommitFate(StrEnum):
    """What becomes of a database commit."""

    IS_DONE = "done"
    LOSES_ANSWER = "done, and its answer is lost"
    IS_LOST = "not done, and the connection breaks"


@dataclass
class DyingStep:
    """A process is to die at one of its next steps in the database."""

    process: str
    left: int
    is_before: bool
    die: Die


@dataclass
class DatabaseFaults:
    """The present faults of one database. Those that last end at a moment of the world's time."""

    now_s: Callable[[], float]
    chance: Chance
    fired: Callable[[str], object]
    """Told of each effect of a fault, by a word: refuse, hang, lost_answer, locked, rule, kill."""
    rules: list[OrderRule] = field(default_factory=list)
    """The rules by which the database refuses single orders."""
    _refuses_until_s: float = 0.0
    _refusal_rate: float = 0.0
    _refused: str | None = None
    _hangs_until_s: float = 0.0
    _hangs_left: int | None = None
    _hang_s: float = 0.0
    _fates: list[tuple[int, CommitFate]] = field(default_factory=list)
    _dying: list[DyingStep] = field(default_factory=list)

    def refuse(self, for_s: float, rate: float = 1.0, process: str | None = None) -> None:
        """Refuses statements with that probability; only those of one process if it is named. Of two times the longer counts."""
        self._refuses_until_s = max(self._refuses_until_s, self.now_s() + for_s)
        self._refusal_rate, self._refused = rate, process

    def hang(self, for_s: float) -> None:
        """Answers no statement before the end of `for_s`. Of two times the longer counts."""
        self._hangs_until_s = max(self._hangs_until_s, self.now_s() + for_s)

    def hang_statements(self, count: int, for_s: float) -> None:
        """Lets each of the next `count` statements take so many seconds, and the others pass."""
        self._hangs_left, self._hang_s = count, for_s

    def lose_answer(self, nth: int = 1) -> None:
        """Stores the `nth` next database commit, and breaks its connection before the answer."""
        self._fates.append((nth, CommitFate.LOSES_ANSWER))

    def lose_commit(self, nth: int = 1) -> None:
        """Breaks the connection of the `nth` next database commit before it is done."""
        self._fates.append((nth, CommitFate.IS_LOST))

    def die_at(self, process: str, nth: int, die: Die, *, is_before: bool) -> None:
        """Lets the process die before or after its `nth` next statement or database commit."""
        self._dying.append(DyingStep(process, nth, is_before, die))

    def mend(self) -> None:
        """Ends all faults, also those that have not happened yet."""
        self._refuses_until_s = self._hangs_until_s = 0.0
        self._hangs_left = None
        self._fates.clear()
        self._dying.clear()
        self.rules.clear()

    # asked at each step

    def hang_ends_s(self) -> float | None:
        """Returns when a statement that begins now goes on; None if at once."""
        if self._hangs_left:
            self._hangs_left -= 1
            self.fired("hang")
            return self.now_s() + self._hang_s
        if self.now_s() < self._hangs_until_s:
            self.fired("hang")
            return self._hangs_until_s
        return None

    def is_refused(self, process: str) -> bool:
        """Returns whether a statement that begins now is refused."""
        if self.now_s() >= self._refuses_until_s or self._refused not in (None, process):
            return False
        if self._refusal_rate < 1 and self.chance.random() >= self._refusal_rate:
            return False
        self.fired("refuse")
        return True

    def is_against_a_rule(self, rows: Iterable[RuledRow]) -> bool:
        """Returns whether a rule refuses one of these rows, and with it their statement."""
        refusing = [rule for row in rows for rule in self.rules if rule.refuses(row, self.now_s())]
        if refusing:
            self.fired("rule")
        return bool(refusing)

    def fate_of_commit(self) -> CommitFate:
        """Returns what becomes of the commit that is done now."""
        if not self._fates:
            return CommitFate.IS_DONE
        self._fates = [(nth - 1, fate) for nth, fate in self._fates]
        due = [fate for nth, fate in self._fates if nth <= 0]
        self._fates = [(nth, fate) for nth, fate in self._fates if nth > 0]
        if not due:
            return CommitFate.IS_DONE
        self.fired("lost_answer")
        return due[0]

    def deaths_of(self, process: str) -> list[DyingStep]:
        """Counts a step of the process; returns the deaths that are due before or after it."""
        if not self._dying:
            return []
        for step in self._dying:
            step.left -= step.process == process
        due = [step for step in self._dying if step.left <= 0]
        self._dying = [step for step in self._dying if step.left > 0]
        return due


def broken_connection() -> sqlite3.OperationalError:
    """Returns the driver's error when the connection breaks."""
    return _error(_BROKEN, "SQLITE_IOERR", sqlite3.SQLITE_IOERR)


def locked() -> sqlite3.OperationalError:
    """Returns the driver's error when others hold a lock for too long."""
    return _error(_LOCKED, "SQLITE_BUSY", sqlite3.SQLITE_BUSY)


def _error(text: str, name: str, code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorname, error.sqlite_errorcode = name, code
    return error
