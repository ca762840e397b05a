"""The events between the broker and its clients, seen at the broker's door, each with the test's time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from rocketmq_broker.message.text.printable import printable

_MAX_TEXT: Final = 2_000
"""Characters. A name that a broker refuses may be as long as a request."""


class EventKind(Enum):
    """The kind of an event."""

    HALF_MESSAGE = "half message"
    MESSAGE = "message"
    REFUSED = "refused"
    DECISION = "decision"
    CHECK = "check-back"
    DELIVERY = "delivery"
    SENT_BACK = "sent back"
    FAULT = "fault"
    BROKER = "broker"


@dataclass(frozen=True, slots=True)
class JournalEvent:
    """An event with its time."""

    at_s: float
    """Seconds of the test's time since the test began."""
    kind: EventKind
    text: str
    keys: tuple[str, ...] = ()
    """The message's ids and keys; none if it concerns all messages."""

    def __str__(self) -> str:
        minutes, seconds = divmod(self.at_s, 60)
        return f"{int(minutes):>4}:{seconds:06.3f}  {self.text}"


class Journal:
    """The latest events."""

    def __init__(self, now_s: Callable[[], float], most: int = 20_000) -> None:
        """`now_s` is the test's time; beyond `most` events the oldest are forgotten."""
        self._now_s = now_s
        self._most = most
        self.events: list[JournalEvent] = []

    def note(self, kind: EventKind, text: str, keys: Iterable[str | None] = ()) -> None:
        """Records an event with the current test time. What cannot be printed is escaped: a client may send any name."""
        text = printable(text, _MAX_TEXT)
        self.events.append(JournalEvent(self._now_s(), kind, text, tuple(key for key in keys if key)))
        if len(self.events) > self._most:
            del self.events[: self._most // 2]

    def of(self, word: str) -> list[JournalEvent]:
        """Returns the events of the message with that id or key, and common events since its first one."""
        names = self._names(word)
        concerning = [event for event in self.events if names & set(event.keys)]
        if not concerning:
            return []
        began_s = concerning[0].at_s
        return [event for event in self.events if names & set(event.keys) or (not event.keys and event.at_s >= began_s)]

    def told(self, events: Iterable[JournalEvent]) -> str:
        """Formats events, one a line, each with the key of its message."""
        business: dict[str, str] = {}
        for event in self.events:
            if len(event.keys) > 1:
                business[event.keys[0]] = " ".join(event.keys[1:])
        return "\n".join(
            f"{event}  [{business.get(event.keys[0], event.keys[0])}]" if event.keys else str(event) for event in events
        )

    def _names(self, word: str) -> set[str]:
        """Returns the ids and keys of that word's message: its keys, and its transaction id."""
        names = {word}
        for event in self.events:
            if word in event.keys:
                names |= set(event.keys[:1])
        return names
