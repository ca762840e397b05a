"""Reports the result of a search as text, and a failed world as text, HTML page and picture."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rocketmq_broker.testing.exploring.search.standing import Totals
from rocketmq_broker.testing.exploring.search.worlds import PlayWorld, WorldEnd, Worlds
from rocketmq_broker.testing.simulation.history import RecordedEvent
from rocketmq_broker.testing.simulation.page import BrokenPromise, WorldReport, page_of, reported_events
from rocketmq_broker.testing.simulation.page.markup import counted
from rocketmq_broker.testing.simulation.plan import Plan
from rocketmq_broker.testing.simulation.shrinking import ShrunkPlan, shrink, without_last_fault

_MAX_BROKEN: Final = 10
_LAST_HAPPENINGS: Final = 40
_NOT_REPORTED: Final = frozenset({"connections-of-dead", "frozen", "thawed"})


@dataclass(frozen=True, slots=True)
class ShrunkFailure:
    """The smallest world found with the same failure."""

    failed: WorldEnd
    """The world before shrinking."""
    end: WorldEnd
    """The smallest world. If its failure was not repeatable, it equals `failed`."""
    beside: WorldEnd | None
    """The smallest world without its last fault. None if it has no fault."""
    shrunk: ShrunkPlan


def shrink_failure(
    worlds: Worlds,
    failed: WorldEnd,
    play: PlayWorld,
    *,
    tries: int,
    seconds: float = math.inf,
) -> ShrunkFailure:
    """Shrinks the plan of a failed world, with at most `tries` runs and `seconds` of real time.

    Ignores worlds that fail for another reason.
    """
    found = shrink(
        failed.plan,
        lambda plan: play(plan, False).fails_like(failed),
        budget=tries,
        seconds=seconds,
        simplest=worlds.kind.simplest,
    )
    repeated = play(found.plan, True)
    before = without_last_fault(found.plan, lambda event: event.what in worlds.kind.kinds)
    beside = None if before is None else play(before, True)
    return ShrunkFailure(failed, repeated if repeated.broken else failed, beside, found)


def write_failure(worlds: Worlds, found: ShrunkFailure, page: Path, how_to_repeat: str) -> str:
    """Writes the HTML page of a failed world. Returns its report as text."""
    beside = None if found.beside is None else world_report(worlds, found.beside, "")
    write_text(page, page_of(world_report(worlds, found.end, how_to_repeat), beside))
    return "\n".join([
        *described_failure(worlds, found.end), "", *_of_plan(worlds, found), "", "The last events:",
        *(described_event(it) for it in _reported(found.end)[-_LAST_HAPPENINGS:]), "",
        f"Page: {page}", f"Repeat: {how_to_repeat}",
    ])  # fmt: skip


def write_text(file: Path, text: str) -> None:
    """Writes a file in UTF-8, with escape sequences for what UTF-8 cannot express, such as parts of a binary file name."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", errors="backslashreplace")


def described_failure(worlds: Worlds, end: WorldEnd) -> Iterator[str]:
    """Yields a line for each violated guarantee."""
    first, *others = end.broken
    yield f"{worlds.name} fails in the world of seed {end.seed}: {first}"
    for one in others[: _MAX_BROKEN - 1]:
        yield f"  {one}"
    if len(end.broken) > _MAX_BROKEN:
        yield f"  and {len(end.broken) - _MAX_BROKEN} more"


def described_event(happening: RecordedEvent) -> str:
    """Returns a line for an event."""
    where = happening.process if happening.to is None else f"{happening.process} -> {happening.to}"
    keys = " ".join(happening.keys[1:] or happening.keys)
    return f"  {happening.at_ns / 1e9:9.3f} s  {where:<18} {happening.text}{f'  [{keys}]' if keys else ''}"


def _of_plan(worlds: Worlds, found: ShrunkFailure) -> Iterator[str]:
    plan = found.shrunk.plan
    if found.shrunk.is_repeated:
        before, after = (_counted(worlds, one) for one in (found.failed.plan, plan))
        yield f"Shrunk from {before} to {after}, in {counted(found.shrunk.tried, 'run')}:"
    else:
        yield "The world did not fail when it was repeated, so something in the test is not deterministic. Its plan:"
    for event in plan.events:
        yield f"  {event.described()}"


def _counted(worlds: Worlds, plan: Plan) -> str:
    faults = sum(event.what in worlds.kind.kinds for event in plan.events)
    return f"{counted(faults, 'fault')} and {counted(len(plan.events) - faults, 'request')}"


def described_totals(totals: Totals, real_s: float, played: int | None = None) -> Iterator[str]:
    """Yields the rate of this run, the faults that occurred with their numbers, and those that never occurred."""
    worlds = totals.worlds if played is None else played
    if worlds:
        yield f"{counted(worlds, 'world')} passed, {worlds / max(real_s, 1e-3):.1f} per second"
    yield f"fired: {', '.join(f'{kind} {count:,}' for kind, count in totals.fired.items() if count) or 'nothing'}"
    if totals.never_fired:
        yield f"never fired: {', '.join(totals.never_fired)}"


def world_report(worlds: Worlds, end: WorldEnd, how_to_repeat: str) -> WorldReport:
    """Returns the data that the page and the picture of a world display."""
    happenings = reported_events(_reported(end))
    last_ns = max([int(end.simulated_s * 1e9), *(it.at_ns for it in happenings)])
    lanes = dict.fromkeys(name for it in happenings for name in (it.process, it.to) if name)
    return WorldReport(
        seed=end.seed,
        title=(end.broken[0].promise or f"{worlds.name} fails").rstrip(".") if end.broken else "Every promise held",
        lanes=tuple(sorted(lanes, key=lambda name: _place(name, worlds.kind.lanes))),
        happenings=happenings,
        violations=tuple(
            BrokenPromise(it.promise or f"{worlds.name} holds", it.text, last_ns if it.at_ns is None else it.at_ns, it.keys)
            for it in end.broken
        ),
        digest=end.digest,
        plan=json.loads(end.plan.written()),
        how_to_repeat=how_to_repeat,
    )


def _reported(end: WorldEnd) -> Sequence[RecordedEvent]:
    return [it for it in end.happenings if it.kind not in _NOT_REPORTED]


def _place(name: str, lanes: Sequence[str]) -> tuple[int, str]:
    begin = max((begin for begin in lanes if name.startswith(begin)), key=len)
    return len(lanes) if ">" in name else lanes.index(begin), name
