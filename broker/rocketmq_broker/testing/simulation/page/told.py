"""What a page tells: a world that was played, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class ToldKind(StrEnum):
    """The kinds of happenings that a page knows by name. A happening of another kind is drawn in a neutral colour."""

    FAULT = "fault"
    ACTION = "action"
    REQUEST = "request"
    ANSWER = "answer"
    SEND = "send"
    HALF = "half"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    CHECK = "check"
    DELIVERY = "delivery"
    ROW = "row"
    FLUSH = "flush"
    START = "start"
    DEATH = "death"
    VIOLATION = "violation"


@dataclass(frozen=True, slots=True)
class ToldHappening:
    """An event in a process. With `to` it is an arrow to another process; a fault with `to` is an arrow that never arrives."""

    at_ns: int
    """Nanoseconds since the world began."""
    process: str
    """The lane; empty if it concerns the whole world."""
    kind: str
    """A ToldKind, as a rule."""
    text: str
    keys: tuple[str, ...] = ()
    """Orders, transactions and messages that it is about."""
    to: str | None = None
    """The lane where it arrives."""


@dataclass(frozen=True, slots=True)
class BrokenPromise:
    """A promise that did not hold, and what was found in its place."""

    promise: str
    """What must hold: `each stored order gets its credit once`."""
    text: str
    """What was found: `order-17 has two credits`."""
    at_ns: int
    """Nanoseconds since the world began."""
    keys: tuple[str, ...] = ()
    """Orders, transactions and messages for which it broke, the most telling one first."""


@dataclass(frozen=True, slots=True)
class ToldWorld:
    """A world that was played. Happenings stand in the order of their times."""

    seed: int
    title: str
    lanes: tuple[str, ...]
    """The names of the processes, from left to right."""
    happenings: tuple[ToldHappening, ...]
    violations: tuple[BrokenPromise, ...] = ()
    digest: str = ""
    """The hash of the whole history, in hexadecimal digits."""
    plan: Mapping[str, Any] = field(default_factory=dict)
    """What the world was played from: values that JSON can hold."""
    how_to_repeat: str = ""
    """The command that plays the world again."""

    @property
    def first_broken(self) -> BrokenPromise | None:
        """The promise that broke first; None if every promise held."""
        return min(self.violations, key=lambda broken: broken.at_ns, default=None)
