"""Folds repeated check-backs of a timeline into one event, so that a long history fits on one screen."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from rocketmq_broker.admin.output.durations import duration_text
from rocketmq_broker.admin.timeline.event import BROKER, Arrow, Event

MIN_FOLDED: Final = 3
"""The minimum number of similar check-backs to fold."""
_SHOWN_BEFORE: Final = 2
_SHOWN_AFTER: Final = 1
_PORT: Final = re.compile(r":\d+$")
_CHECK_BACK: Final = "check-back "
WRITTEN_AGAIN: Final = "half message written again"
"""The label of the arrow for a copy of the half message that the broker writes at a check-back."""


class FoldedEvent(Event, frozen=True, rename="camel", kw_only=True):
    """An event that replaces consecutive check-backs with the same response. `at_ms` is the time of the first check-back."""

    count: int
    until_ms: int | None
    """The time of the last folded event, in milliseconds since the epoch."""
    pace: str
    """The interval of the check-backs and the answer, for example `every 2 s, answered UNKNOWN`."""
    copies: int = 0
    """The number of folded copies of the half message."""


@dataclass(slots=True)
class _Round:
    """A check-back with its events, or a single other event. Only check-backs have a number."""

    events: list[Event] = field(default_factory=list)
    number: int | None = None
    answer: str | None = None

    @property
    def kind(self) -> tuple[str | None, str | None]:
        """The producer's host and the response. Rounds of the same kind are folded, even across restarts of the producer."""
        return (_PORT.sub("", self.asked), self.answer) if self.number is not None else (None, None)

    @property
    def asked(self) -> str:
        """The phrase that names the producer, from the text of the check-back."""
        return self.events[0].what.partition(": ")[2]


def folded(events: Sequence[Event]) -> list[Event]:
    """Returns the events, with each long sequence of similar check-backs folded into one event.

    The first two check-backs and the last one of a sequence are not folded.
    """
    kept: list[Event] = []
    for row in _rows(_rounds(events)):
        begin, end = _SHOWN_BEFORE, len(row) - _SHOWN_AFTER
        is_folded = row[0].number is not None and end - begin >= MIN_FOLDED
        shown, hidden, last = (row[:begin], row[begin:end], row[end:]) if is_folded else (row, [], [])
        kept += [event for one in shown for event in one.events]
        if hidden:
            kept.append(_fold(hidden))
        kept += [event for one in last for event in one.events]
    return kept


def _rounds(events: Sequence[Event]) -> Iterator[_Round]:
    """Groups each check-back with its response and its copy of the half message. Each other event is a group by itself."""
    current: _Round | None = None
    for event in events:
        number = _number(event)
        if number is not None:
            if current is not None:
                yield current
            current = _Round([event], number)
        elif current is not None and _belongs(event, current):
            current.events.append(event)
            if event.arrow is not None and event.arrow.receiver == BROKER and event.arrow.sender != BROKER:
                current.answer = event.arrow.label
        else:
            if current is not None:
                yield current
            current = None
            yield _Round([event])
    if current is not None:
        yield current


def _rows(rounds: Iterator[_Round]) -> Iterator[list[_Round]]:
    """Groups consecutive check-backs of the same kind."""
    row: list[_Round] = []
    for one in rounds:
        if row and (one.number is None or row[-1].number is None or one.kind != row[-1].kind):
            yield row
            row = []
        row.append(one)
    if row:
        yield row


def _number(event: Event) -> int | None:
    """Returns the number of a check-back; None for other events."""
    if event.arrow is None or event.arrow.sender != BROKER or not event.arrow.label.startswith(_CHECK_BACK):
        return None
    number = event.arrow.label.removeprefix(_CHECK_BACK)
    return int(number) if number.isdecimal() else None


def _belongs(event: Event, current: _Round) -> bool:
    """Returns whether the event is the check-back's response, or the copy of the half message written for the check-back."""
    arrow = event.arrow
    if arrow is None or current.events[0].arrow is None:
        return False
    is_answer = arrow.receiver == BROKER and arrow.sender == current.events[0].arrow.receiver and current.answer is None
    return is_answer or arrow.label == WRITTEN_AGAIN


def _fold(rounds: Sequence[_Round]) -> FoldedEvent:
    first, last = rounds[0].events[0], rounds[-1].events[0]
    assert first.arrow is not None
    times = [event.at_ms for one in rounds for event in one.events if event.at_ms is not None]
    until_ms = max(times, default=None)
    pace = f"{_every(first.at_ms, last.at_ms, len(rounds) - 1)}{_answered(rounds[0].answer)}"
    lasted = f", for {duration_text(until_ms - first.at_ms)}" if until_ms is not None and first.at_ms is not None else ""
    asked = {one.asked for one in rounds}
    numbers = f"{_CHECK_BACK}{rounds[0].number} to {rounds[-1].number}"
    return FoldedEvent(
        at_ms=first.at_ms,
        what=f"{numbers}, {pace}{lasted}: {asked.pop() if len(asked) == 1 else rounds[0].kind[0]}",
        on_record=first.on_record,
        arrow=Arrow(BROKER, first.arrow.receiver, numbers),
        count=len(rounds),
        copies=sum(event.arrow is not None and event.arrow.label == WRITTEN_AGAIN for one in rounds for event in one.events),
        until_ms=until_ms,
        pace=pace,
    )


def _every(first_ms: int | None, last_ms: int | None, gaps: int) -> str:
    if first_ms is None or last_ms is None:
        return ""
    each_ms = max(0, last_ms - first_ms) / gaps
    return f"every {duration_text(round(each_ms / 1000) * 1000 if each_ms >= 1000 else round(each_ms))}, "


def _answered(answer: str | None) -> str:
    return "without an answer" if answer in (None, "no answer") else f"answered {answer}"
