"""Renders two simulated runs in two columns, with and without the last fault. Events in both are folded into a count."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from rocketmq_broker.testing.simulation.page.comparing import Pair
from rocketmq_broker.testing.simulation.page.kinds import kind_class, tag
from rocketmq_broker.testing.simulation.page.lanes import who_text
from rocketmq_broker.testing.simulation.page.markup import counted, escaped, moment_text
from rocketmq_broker.testing.simulation.page.world_report import ReportedEvent, WorldReport

_AROUND: Final = 2
"""The number of common events shown before and after events that occur in only one column."""
_MAX_LENGTH: Final = 120
"""The maximum length of an event's text in a column, in characters."""


def columns_of(here: WorldReport, beside: WorldReport, pairs: Sequence[Pair]) -> str:
    """Returns the runs `here` and `beside` as two columns of HTML."""
    return (
        '<div class="pairs">\n<div class="pair heads"><h3>With the last fault</h3><h3>Without it</h3></div>\n'
        f"{''.join(_runs(pairs))}"
        f'<div class="pair ends">{_end(here)}{_end(beside)}</div>\n</div>\n'
    )


def _runs(pairs: Sequence[Pair]) -> Iterator[str]:
    runs = [(is_same, list(run)) for is_same, run in groupby(pairs, key=lambda pair: pair.is_same)]
    for place, (is_same, run) in enumerate(runs):
        if not is_same:
            yield from map(_pair, run)
            continue
        first = _AROUND if place > 0 else 0
        last = max(first, len(run) - (_AROUND if place < len(runs) - 1 else 0))
        yield from map(_pair, run[:first])
        yield _fold(run[first:last])
        yield from map(_pair, run[last:])


def _fold(run: Sequence[Pair]) -> str:
    if len(run) <= 1:
        return "".join(map(_pair, run))
    summary = f"<summary>… {counted(len(run), 'event')} in both worlds …</summary>"
    return f"<details>{summary}\n{''.join(map(_pair, run))}</details>\n"


def _pair(pair: Pair) -> str:
    mark = "" if pair.is_same else " differs"
    return f'<div class="pair{mark}">{_cell(pair.here)}{_cell(pair.beside)}</div>\n'


def _cell(happening: ReportedEvent | None) -> str:
    if happening is None:
        return '<p class="none">nothing</p>'
    who = f"<b>{who_text(happening)}</b> " if happening.process else ""
    return (
        f'<p class="{kind_class(happening.kind)}"><span class="at">{moment_text(happening.at_ns)}</span> {who}'
        f"{tag(happening.kind)}{escaped(happening.text, _MAX_LENGTH)}</p>"
    )


def _end(world: WorldReport) -> str:
    if not world.violations:
        return '<p class="good">Every promise holds.</p>'
    return f'<p class="bad">{counted(len(world.violations), "broken promise")}.</p>'


def only_in(pairs: Iterable[Pair]) -> frozenset[ReportedEvent]:
    """Returns the events that occur in only one of the two runs."""
    return frozenset(pair.here for pair in pairs if pair.here is not None and not pair.is_same)
