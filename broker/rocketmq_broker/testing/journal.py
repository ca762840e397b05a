"""Keeps a journal of events between the broker and its clients, each with the test's time."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from rocketmq_broker.message.text.printable import printable

_MAX_TEXT: Final = 2_000
"""The maximum length of an event's text, in characters. Names sent by a client may be as long as a request."""


class EventKind(Enum):
    """The kinds of events in the journal."""

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
    """An event in the journal."""

    at_s: float
    """The seconds of the test's time since the test began."""
    kind: EventKind
    text: str
    keys: tuple[str, ...] = ()
    """The message's ids and keys; empty for an event that concerns all messages."""

    def __str__(self) -> str:
        minutes, seconds = divmod(self.at_s, 60)
        return f"{int(minutes):>4}:{seconds:06.3f}  {self.text}"


class Journal:
    """Keeps the latest events between the broker and its clients."""

    def __init__(self, now_s: Callable[[], float], max_events: int = 20_000) -> None:
        """Creates an empty journal of the latest `max_events` events. `now_s` returns the test's time."""
        self._now_s = now_s
        self._max_events = max_events
        self.events: list[JournalEvent] = []

    def note(self, kind: EventKind, text: str, keys: Iterable[str | None] = ()) -> None:
        """Records an event at the current test time. Escapes unprintable characters, because a client may send any name."""
        text = printable(text, _MAX_TEXT)
        self.events.append(JournalEvent(self._now_s(), kind, text, tuple(key for key in keys if key)))
        if len(self.events) > self._max_events:
            del self.events[: self._max_events // 2]

    def of(self, word: str) -> list[JournalEvent]:
        """Returns the events of the message with the id or key `word`.

        Also returns all events without a key since the message's first event.
        """
        names = self._names(word)
        concerning = [event for event in self.events if names & set(event.keys)]
        if not concerning:
            return []
        began_s = concerning[0].at_s
        return [event for event in self.events if names & set(event.keys) or (not event.keys and event.at_s >= began_s)]

    def format(self, events: Iterable[JournalEvent]) -> str:
        """Formats events, one per line, each with the key of its message."""
        business: dict[str, str] = {}
        for event in self.events:
            if len(event.keys) > 1:
                business[event.keys[0]] = " ".join(event.keys[1:])
        return "\n".join(
            f"{event}  [{business.get(event.keys[0], event.keys[0])}]" if event.keys else str(event) for event in events
        )

    def _names(self, word: str) -> set[str]:
        """Returns the word, and the transaction ids of the messages with this id or key."""
        names = {word}
        for event in self.events:
            if word in event.keys:
                names |= set(event.keys[:1])
        return names
