"""The events of one stage, with their times."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """The source of an event; the value is its sign."""

    SENT = "→"
    RECEIVED = "←"
    PROCESS = "●"
    FILE = "▤"
    WAITED = "…"


@dataclass(frozen=True, slots=True)
class Event:
    """One event."""

    at_ms: int
    """The time since the begin of the stage."""
    kind: Kind
    text: str
    data: bytes = b""
    """The bytes that went over the wire, or that were read from a file."""


class Timeline:
    """The events of a running stage."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self.events: list[Event] = []

    @property
    def now_ms(self) -> int:
        """Milliseconds since the stage began."""
        return round((time.monotonic() - self._began) * 1000)

    def add(self, kind: Kind, text: str, data: bytes = b"") -> None:
        """Notes one more event."""
        self.events.append(Event(self.now_ms, kind, text, data))
