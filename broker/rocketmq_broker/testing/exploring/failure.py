"""Reports a failed world (simulated run): shrinks its plan within a time limit, and writes a text report and an HTML page."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rocketmq_broker.testing.exploring.drawing import REQUEST, one_line
from rocketmq_broker.testing.exploring.world import ExploredWorld
from rocketmq_broker.testing.simulation.history import RecordedEvent
from rocketmq_broker.testing.simulation.page import BrokenPromise, WorldReport, page_of, reported_events
from rocketmq_broker.testing.simulation.page.markup import counted
from rocketmq_broker.testing.simulation.plan import Plan
from rocketmq_broker.testing.simulation.shrinking import ShrunkPlan, shrink, without_last_fault

_LAST_HAPPENINGS: Final = 40
_NOT_REPORTED: Final = frozenset({"connections-of-dead", "frozen", "thawed"})


@dataclass(frozen=True, slots=True)
class PlayedTest:
    """One run of the test, in one world."""

    world: ExploredWorld
    error: BaseException | None
    """The error that the test raised; None if it passed."""

    @property
    def mark(self) -> tuple[object, ...]:
        """The types of the error and its causes, with the lines that raised them. Equal marks identify the same failure."""
        found: list[object] = []
        error = self.error
        while error is not None:
            frames = traceback.extract_tb(error.__traceback__)
            found += [type(error).__name__, *([frames[-1].filename, frames[-1].lineno] if frames else [])]
            error = error.__cause__
        return tuple(found)


PlayTest = Callable[[Plan, bool], PlayedTest]
"""A function that runs the test with a plan. Its second argument is whether to record all messages in the history."""


def shrunk(failed: PlayedTest, play: PlayTest, *, tries: int, seconds: float) -> ShrunkPlan:
    """Shrinks the plan of a failed world, with at most `tries` runs and `seconds` of real time."""
    mark = failed.mark
    return shrink(failed.world.plan, lambda plan: play(plan, False).mark == mark, budget=tries, seconds=seconds)


def report(failed: PlayedTest, play: PlayTest, found: ShrunkPlan, folder: Path, name: str) -> str:
    """Returns the report of a failure as text, and writes its HTML page."""
    repeated = play(found.plan, True)
    shown = repeated if repeated.error is not None else failed
    before = without_last_fault(found.plan, lambda event: event.what != REQUEST)
    beside = None if before is None else play(before, True)
    page = folder / f"world-{failed.world.plan.seed}.html"
    folder.mkdir(parents=True, exist_ok=True)
    again = f"@explore(plan={one_line(found.plan)!r})"
    page.write_text(page_of(_report_of(shown, name, again), None if beside is None else _report_of(beside, name, "")))
    lines = [
        f"{name} fails in the world of seed {failed.world.plan.seed}: {type(shown.error).__name__}: {shown.error}",
        "",
        *_of_plan(failed.world.plan, found),
        "",
        "The last events:",
        *_last(shown.world.history.happenings),
        "",
        f"Page: {page}",
        f"Repeat: {again}",
    ]
    return "\n".join(lines)


def _of_plan(before: Plan, found: ShrunkPlan) -> list[str]:
    if not found.is_repeated:
        return [
            "The world did not fail when it was repeated, so something in the test is not deterministic. Its plan:",
            *_events(before),
        ]
    counts = f"from {_counted(before)} to {_counted(found.plan)}, in {found.tried} runs"
    return [f"Shrunk {counts}:", *_events(found.plan)]


def _counted(plan: Plan) -> str:
    requests = sum(event.what == REQUEST for event in plan.events)
    return f"{counted(len(plan.events) - requests, 'fault')} and {counted(requests, 'request')}"


def _events(plan: Plan) -> list[str]:
    return [f"  {event.described()}" for event in plan.events]


def _last(happenings: Sequence[RecordedEvent]) -> list[str]:
    reported = [it for it in happenings if it.kind not in _NOT_REPORTED]
    return [_line(it) for it in reported[-_LAST_HAPPENINGS:]]


def _line(happening: RecordedEvent) -> str:
    where = happening.process if happening.to is None else f"{happening.process} -> {happening.to}"
    keys = " ".join(happening.keys[1:] or happening.keys)
    return f"  {happening.at_ns / 1e9:9.3f} s  {where:<18} {happening.text}{f'  [{keys}]' if keys else ''}"


def _report_of(played: PlayedTest, name: str, again: str) -> WorldReport:
    world, error = played.world, played.error
    happenings = reported_events(it for it in world.history.happenings if it.kind not in _NOT_REPORTED)
    last_ns = max((it.at_ns for it in happenings), default=0)
    lanes = dict.fromkeys(lane for it in happenings for lane in (it.process, it.to) if lane)
    broken = () if error is None else (BrokenPromise(f"{name} holds", _first_lines(error), last_ns, _keys_in(str(error), world)),)
    return WorldReport(
        seed=world.plan.seed,
        title=f"{name} holds" if error is None else f"{name} fails",
        lanes=tuple(sorted(lanes, key=_place)),
        happenings=happenings,
        violations=broken,
        digest=world.history.digest,
        plan=json.loads(world.plan.written()),
        how_to_repeat=again,
    )


def _first_lines(error: BaseException) -> str:
    return "\n".join(f"{type(error).__name__}: {error}".splitlines()[:10])


def _keys_in(text: str, world: ExploredWorld) -> tuple[str, ...]:
    """Returns the message keys that occur in the error message `text`."""
    known = dict.fromkeys(key for it in world.history.happenings for key in it.keys)
    return tuple(key for key in known if key in text)


def _place(lane: str) -> tuple[int, str]:
    """Returns the sort key of a lane. The order is customers, programs, broker, name server, links."""
    known = {"customer": 0, "broker": 2, "names": 3}
    return (4 if ">" in lane else known.get(lane, 1)), lane
