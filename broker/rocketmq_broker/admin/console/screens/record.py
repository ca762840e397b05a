"""The screen that shows the bytes of a record and marks its fields."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from rocketmq_broker.admin.broker_requests.requests import decoding_answer_of
from rocketmq_broker.admin.console.brokers import broker_at
from rocketmq_broker.admin.console.screen import Screen
from rocketmq_broker.admin.console.visit import Visit
from rocketmq_broker.admin.output.records import MarkedField, marked_fields
from rocketmq_broker.admin.output.shown_bodies import readable

_BYTES_ON_A_LINE: Final = 16
_MAX_LINES: Final = 256
MARKS: Final = 6
"""The number of colours that distinguish neighbouring fields."""


class RecordRun(NamedTuple):
    """Adjacent bytes of one field on the same line."""

    hex: str
    text: str
    mark: int
    name: str


class RecordLine(NamedTuple):
    """A line of up to sixteen bytes."""

    position: int
    runs: list[RecordRun]


class RecordFacts(NamedTuple):
    """The facts about a record that the screen shows."""

    broker: str
    offset: int
    size: int
    fields: list[tuple[MarkedField, int]]
    """The fields, each with the number of its colour."""
    lines: list[RecordLine]
    is_cut: bool


async def find(visit: Visit) -> RecordFacts:
    """Returns the record at a commit log offset. Raises CannotAsk, or Refused if there is none."""
    broker, offset = broker_at(await visit.session(), visit.word("broker")), visit.number("offset", 0)
    data = await broker.view_bytes(offset)
    with decoding_answer_of(broker.address):
        fields = [(field, index % MARKS) for index, field in enumerate(marked_fields(data))]
    lines = list(_lines(fields, min(len(data), _MAX_LINES * _BYTES_ON_A_LINE)))
    return RecordFacts(broker.address, offset, len(data), fields, lines, len(data) > _MAX_LINES * _BYTES_ON_A_LINE)


def _lines(fields: Sequence[tuple[MarkedField, int]], end: int) -> Iterator[RecordLine]:
    for position in range(0, end, _BYTES_ON_A_LINE):
        runs = []
        end_of_line = position + _BYTES_ON_A_LINE
        for field, mark in fields:
            begin = max(position, field.begin)
            data = field.data[begin - field.begin : max(0, end_of_line - field.begin)]
            if data:
                runs.append(RecordRun(data.hex(" "), readable(data), mark, field.name))
        yield RecordLine(position, runs)


SCREEN: Final = Screen("/record", "Bytes of a record", "record.html", find, refresh_s=None)
