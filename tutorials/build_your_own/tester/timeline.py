"""Records the events of a stage with their times."""

import time
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """The kind of an event. The value is the symbol of the kind in the timeline."""

    SENT = "→"
    RECEIVED = "←"
    PROCESS = "●"
    FILE = "▤"
    WAITED = "…"


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a stage, such as a sent frame."""

    at_ms: int
    """The time of the event in milliseconds since the start of the stage."""
    kind: Kind
    text: str
    data: bytes = b""
    """The bytes sent, received or read from a file."""


class Timeline:
    """The events of a running stage."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self.events: list[Event] = []

    @property
    def now_ms(self) -> int:
        """The time since the start of the stage in milliseconds."""
        return round((time.monotonic() - self._began) * 1000)

    def add(self, kind: Kind, text: str, data: bytes = b"") -> None:
        """Adds an event at the current time."""
        self.events.append(Event(self.now_ms, kind, text, data))
