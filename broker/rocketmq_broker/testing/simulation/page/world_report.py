"""Defines the data of a page: a world, which is one simulated run, and its events."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class ReportedKind(StrEnum):
    """The kinds of events that are coloured. Events of other kinds have a neutral colour."""

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
class ReportedEvent:
    """An event in a process.

    An event with `to` is drawn as an arrow to another process. A fault with `to` is drawn as a lost arrow.
    """

    at_ns: int
    """The nanoseconds since the world began."""
    process: str
    """The name of the lane; empty for an event of the whole world."""
    kind: str
    """The kind of the event, usually a ReportedKind."""
    text: str
    keys: tuple[str, ...] = ()
    """The orders, transactions and messages that the event concerns."""
    to: str | None = None
    """The receiver's lane."""


@dataclass(frozen=True, slots=True)
class BrokenPromise:
    """A rule of the system that a run violated (the promise), and the evidence of the violation."""

    promise: str
    """The promise, such as `each stored order gets its credit once`."""
    text: str
    """The finding, such as `order-17 has two credits`."""
    at_ns: int
    """The nanoseconds since the world began."""
    keys: tuple[str, ...] = ()
    """The orders, transactions and messages concerned, the most important one first."""


@dataclass(frozen=True, slots=True)
class WorldReport:
    """A simulated world after its run. The events are ordered by time."""

    seed: int
    title: str
    lanes: tuple[str, ...]
    """The names of the processes, from left to right."""
    happenings: tuple[ReportedEvent, ...]
    violations: tuple[BrokenPromise, ...] = ()
    digest: str = ""
    """The hash of the whole history, in hexadecimal."""
    plan: Mapping[str, Any] = field(default_factory=dict)
    """The plan of the world, as JSON values."""
    how_to_repeat: str = ""
    """The command that repeats the run."""

    @property
    def first_broken(self) -> BrokenPromise | None:
        """The first broken promise, or None if all promises held."""
        return min(self.violations, key=lambda broken: broken.at_ns, default=None)
