"""Lays out the sequence diagram of a transaction."""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Final, NamedTuple

from rocketmq_broker.admin.output.durations import duration_text, since_text
from rocketmq_broker.admin.timeline.event import BROKER, OPERATOR, Arrow, Event
from rocketmq_broker.admin.timeline.folding import FoldedEvent

_TIMES_WIDTH: Final = 70
"""The width in pixels of the left column, which shows the times since the half message."""
LANE_WIDTH: Final = 172
"""The distance of two life lines in pixels."""
_HEAD_GAP: Final = 14
"""The gap in pixels between the names of neighbouring life lines."""
_HEAD_HEIGHT: Final = 44
_ROW_HEIGHT: Final = 40
_WAIT_HEIGHT: Final = 24
_FOOT_HEIGHT: Final = 14
_LONG_WAIT_MS: Final = 1_000
"""The minimum gap in milliseconds for a wait mark between two arrows. Marks are needed because rows are not to scale."""
_LOOP_WIDTH: Final = 26
_LETTER_WIDTH: Final = 8
"""The maximum width of a letter in pixels. Used to widen the diagram for a label beside a loop of the last life line."""
_LABEL_LETTER_WIDTH: Final = 6.8
"""The mean width of a letter in pixels. Used to cut labels above arrows, and to widen the diagram for a wait mark."""
_MAX_LOOP_LABEL_LENGTH: Final = 32
"""The number of characters that fit beside a loop. The row of a loop contains no other label."""
_MAX_NAME_LENGTH: Final = 20


class Lane(NamedTuple):
    """A participant, shown as a name above a life line."""

    name: str
    full_name: str
    x: int


class Row(NamedTuple):
    """An arrow with the time of its event."""

    y: int
    begin_x: int
    end_x: int
    """The x position where the arrow ends. Equal to `begin_x` for a step without a message."""
    label_x: int
    label: str
    what: str
    """The full sentence that describes the event, for the tooltip and for screen readers."""
    time: str
    """The time since the half message; empty if unknown."""
    is_lost: bool

    @property
    def is_loop(self) -> bool:
        """True if the arrow begins and ends at the same life line."""
        return self.begin_x == self.end_x

    @property
    def head_x(self) -> int:
        """The x position of the arrowhead. The arrow of a lost message ends halfway."""
        return (self.begin_x + self.end_x) // 2 if self.is_lost else self.end_x

    @property
    def toward(self) -> int:
        """The direction of the arrow: 1 to the right, -1 to the left."""
        return 1 if self.end_x >= self.begin_x else -1


class WaitMark(NamedTuple):
    """A band across all life lines that shows how much time passes between two rows."""

    y: int
    text: str


class Diagram(NamedTuple):
    """A sequence diagram of `width` by `height`, which consists of lanes and rows."""

    width: int
    height: int
    head_width: int
    head_height: int
    loop_width: int
    lanes: list[Lane]
    rows: list[Row]
    waits: list[WaitMark]


def sequence_diagram(events: Sequence[Event], lanes: Sequence[str] | None = None, *, lane_width: int = LANE_WIDTH) -> Diagram:
    """Returns the diagram of the events that have arrows.

    `lanes` are the participants from left to right. Without them, producers are to the left of the broker, and consumers to its
    right. `lane_width` is the distance of two life lines in pixels: labels are cut to it.
    """
    drawn = [(event, event.arrow) for event in events if event.arrow is not None]
    names = lanes if lanes is not None else _lanes((arrow.sender, arrow.receiver) for _, arrow in drawn)
    places = {name: _TIMES_WIDTH + lane_width // 2 + index * lane_width for index, name in enumerate(names)}
    begun_ms = next((event.at_ms for event, _ in drawn if event.at_ms is not None), 0)
    rows: list[Row] = []
    waits: list[WaitMark] = []
    y, last_ms = _HEAD_HEIGHT, None
    for event, arrow in drawn:
        if last_ms is not None and event.at_ms is not None and event.at_ms - last_ms >= _LONG_WAIT_MS:
            y += _WAIT_HEIGHT
            waits.append(WaitMark(y - _WAIT_HEIGHT // 2, f"{duration_text(event.at_ms - last_ms)} pass"))
        y += _ROW_HEIGHT
        rows.append(_row(event, arrow, y - 8, places, begun_ms, int(lane_width / _LABEL_LETTER_WIDTH)))
        last_ms = event.at_ms if event.at_ms is not None else last_ms
        if isinstance(event, FoldedEvent):
            y += _WAIT_HEIGHT
            waits.append(WaitMark(y - _WAIT_HEIGHT // 2, _folded_text(event)))
            last_ms = event.until_ms if event.until_ms is not None else last_ms
    drawn_lanes = [Lane(_cut(name, _MAX_NAME_LENGTH), name, x) for name, x in places.items()]
    ends: list[float] = [row.label_x + len(row.label) * _LETTER_WIDTH for row in rows if row.is_loop]
    ends += [len(wait.text) * _LABEL_LETTER_WIDTH for wait in waits]
    width = ceil(max(_TIMES_WIDTH + max(1, len(places)) * lane_width, *ends, 0))
    head_width = lane_width - _HEAD_GAP
    return Diagram(width, y + _FOOT_HEIGHT, head_width, _HEAD_HEIGHT, _LOOP_WIDTH, drawn_lanes, rows, waits)


def _folded_text(event: FoldedEvent) -> str:
    copies = f", copies of the half message written: {event.copies}" if event.copies else ""
    return f"{event.count} check-backs, {event.pace}{copies}"


def _row(event: Event, arrow: Arrow, y: int, places: Mapping[str, int], begun_ms: int, max_label: int) -> Row:
    begin_x, end_x = places[arrow.sender], places[arrow.receiver]
    is_loop = begin_x == end_x
    return Row(
        y=y,
        begin_x=begin_x,
        end_x=end_x,
        label_x=begin_x + _LOOP_WIDTH + 6 if is_loop else (begin_x + end_x) // 2,
        label=_cut(arrow.label, _MAX_LOOP_LABEL_LENGTH if is_loop else max_label),
        what=event.what,
        time="" if event.at_ms is None else since_text(event.at_ms - begun_ms),
        is_lost=arrow.is_lost,
    )


def _lanes(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Returns the participants from left to right: operators, senders to the broker, the broker, and all others.

    A participant without an arrow to the broker, such as a database, is placed next to the participant that it shares an arrow
    with, on the side away from the broker.
    """
    left: list[str] = []
    right: list[str] = []
    for sender, receiver in pairs:
        for name, neighbour in ((sender, receiver), (receiver, sender)):
            if name in (BROKER, OPERATOR) or name in left or name in right:
                continue
            if neighbour in left and neighbour != name:
                left.insert(left.index(neighbour), name)
            elif neighbour in right and neighbour != name:
                right.insert(right.index(neighbour) + 1, name)
            elif BROKER in (sender, receiver) and name == sender:
                left.append(name)
            else:
                right.append(name)
        if OPERATOR in (sender, receiver) and OPERATOR not in left:
            left.insert(0, OPERATOR)
    return [*left, BROKER, *right]


def _cut(text: str, max_length: int) -> str:
    return text if len(text) <= max_length else f"{text[: max_length - 1]}…"
