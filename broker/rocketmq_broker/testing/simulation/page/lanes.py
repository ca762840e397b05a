"""Renders a simulated run as lanes: one for each process, with time running downwards and an arrow for each message."""

from collections.abc import Collection, Iterator, Sequence

from rocketmq_broker.testing.simulation.page.folds import Folds
from rocketmq_broker.testing.simulation.page.grid import Grid, grid_of
from rocketmq_broker.testing.simulation.page.kinds import KINDS, kind_class, tag
from rocketmq_broker.testing.simulation.page.markup import escaped, listed, moment_text
from rocketmq_broker.testing.simulation.page.scene import Scene
from rocketmq_broker.testing.simulation.page.world_report import ReportedEvent, ReportedKind, WorldReport


def lanes_of(world: WorldReport, scene: Scene, anchors: Sequence[str], only_here: Collection[ReportedEvent]) -> str:
    """Returns the lanes as HTML. `anchors` are the ids of the rows.

    Events in `only_here`, which do not occur in the compared run, are marked.
    """
    grid = grid_of(world.lanes, scene.happenings)
    heads = "".join(f'<b style="grid-column:{grid.head(lane)}">{escaped(lane)}</b>' for lane in grid.lanes)
    lives = "".join(f'<i style="grid-column:{grid.line(lane)}"></i>' for lane in grid.lanes)
    return (
        f"{_legend(scene, bool(only_here))}\n"
        '<div class="scroll" tabindex="0" role="group" aria-label="Events, from top to bottom">\n'
        f'<div class="lanes" style="--halves:{2 * len(grid.lanes)}">\n'
        f'<div class="heads" aria-hidden="true"><span>time</span>{heads}</div>\n'
        f'<div class="lives" aria-hidden="true">{lives}</div>\n'
        f"<ol>\n{''.join(_rows(scene, grid, anchors, only_here))}</ol>\n</div>\n</div>\n{_silent(world, grid)}"
    )


def who_text(happening: ReportedEvent) -> str:
    """Returns the HTML of an event's process and receiver: `orders-1`, or `orders-1 → broker-a`."""
    if happening.to and happening.to != happening.process:
        return f"{escaped(happening.process)} → {escaped(happening.to)}"
    return escaped(happening.process)


def _rows(scene: Scene, grid: Grid, anchors: Sequence[str], only_here: Collection[ReportedEvent]) -> Iterator[str]:
    folds = Folds()
    down: set[str] = set()
    for one, anchor in zip(scene.shown, anchors, strict=True):
        happening = one.happening
        yield folds.fold(one.waited_ns, one.skipped, _down(grid, down))
        if happening.kind == ReportedKind.START:
            down.discard(happening.process)
        yield _row(happening, grid, anchor, happening in only_here, _down(grid, down))
        if happening.kind == ReportedKind.DEATH:
            down.add(happening.process)
    yield folds.fold(0, scene.skipped_after, _down(grid, down))


def _row(happening: ReportedEvent, grid: Grid, anchor: str, is_only_here: bool, down: str) -> str:
    marks = f"{kind_class(happening.kind)}{' only' if is_only_here else ''}"
    moment = f'<a class="at" href="#{anchor}">{moment_text(happening.at_ns)}</a>'
    who = f'<span class="who">{who_text(happening)}</span>'
    return f'<li class="{marks}" id="{anchor}">{moment}{down}{who}{_drawn(happening, grid)}</li>\n'


def _down(grid: Grid, down: Collection[str]) -> str:
    return "".join(f'<i class="down" style="grid-column:{grid.line(lane)}"></i>' for lane in grid.lanes if lane in down)


def _drawn(happening: ReportedEvent, grid: Grid) -> str:
    text = f"<span>{tag(happening.kind)}{escaped(happening.text)}</span>"
    process, to = happening.process, happening.to
    if not process:
        return f'<p class="all">{text}</p>'
    if not to or to == process:
        side = "note left" if grid.is_noted_left(process) else "note"
        return f'<p class="{side}" style="grid-column:{grid.note(process)}">{text}</p>'
    direction = "right" if grid.line(process) < grid.line(to) else "left"
    return (
        f'<p class="label" style="grid-column:{grid.above_arrow(process, to)}">{text}</p>'
        f'<i class="arrow {direction}" style="grid-column:{grid.arrow(process, to)}"></i>'
    )


def _legend(scene: Scene, has_marks: bool) -> str:
    found = {happening.kind for happening in scene.happenings}
    items = [f'<li class="{kind_class(kind)}">{name}</li>' for kind, name in KINDS.items() if kind in found]
    if has_marks:
        items.append('<li class="only">only in this world, not in the other one</li>')
    return f'<ul class="legend" aria-label="Colours">{"".join(items)}</ul>'


def _silent(world: WorldReport, grid: Grid) -> str:
    silent = [escaped(lane) for lane in world.lanes if lane not in grid.lanes]
    return f'<p class="faint">No events in {listed(silent)}.</p>\n' if silent else ""
