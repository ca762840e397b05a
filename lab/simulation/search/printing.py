"""Prints the command's output: the table of faults, the result, a failure, and a summary of a simulation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lab.simulation.plans.fault_table import FAULTS
from lab.simulation.search.digests import DifferentDigests
from lab.simulation.search.failure import ShrunkFailure
from lab.simulation.search.standing import Totals
from lab.simulation.search.worlds import FoundBroken, WorldEnd
from rocketmq_broker.testing.simulation.history import RecordedEvent

_MAX_HAPPENINGS: Final = 60
_MAX_BROKEN: Final = 10
_IN_SHORT: Final = frozenset({"fault", "death", "start", "error", "violation"})


def print_totals(console: Console, totals: Totals, *, played: int, real_s: float, processes: int) -> None:
    """Prints how often each kind of fault occurred, and the rate of this run: `played` simulations in `real_s` seconds."""
    console.print(table_of_fired(totals.fired, FAULTS))
    if played and real_s > 0:
        console.print(
            f"Played now: {played:,} worlds, {played / real_s:.1f} a second in {processes} processes",
            markup=False, highlight=False,
        )  # fmt: skip
    console.print(
        f"Kept for this code: {totals.worlds:,} worlds, {totals.simulated_s / max(1, totals.worlds):,.0f} simulated seconds and "
        f"{totals.cpu_s / max(1, totals.worlds):.2f} seconds of a processor each",
        markup=False, highlight=False, soft_wrap=True,
    )  # fmt: skip


def table_of_fired(fired: Mapping[str, int], kinds: Iterable[str]) -> Table:
    """Returns the table of faults that have occurred, followed by rare branches that were executed."""
    table = Table(title="What happened in these worlds", title_justify="left")
    table.add_column("fault, or rare branch")
    table.add_column("times", justify="right")
    names = [str(kind) for kind in kinds]
    for name in [*names, *sorted(fired.keys() - set(names))]:
        count = fired.get(name, 0)
        table.add_row(name, Text(f"{count:,}", "" if count else "bold red"))
    return table


def print_never_fired(console: Console, names: Sequence[str], worlds: int) -> None:
    """Prints the kinds of faults and the rare branches that never occurred."""
    console.print(f"In {worlds:,} worlds this never happened, so that they prove nothing about it:", style="red", markup=False)
    for name in names:
        console.print(f"  {name}", style="red", markup=False)


def print_failure(console: Console, failed: WorldEnd, shrunk: ShrunkFailure) -> None:
    """Prints a violated guarantee with the plan that leads to it."""
    print_broken(console, f"World {failed.seed} breaks a promise", shrunk.end.broken)
    if not shrunk.is_repeated:
        console.print(
            "Played again the world held this promise: it is not the same each time. Its plan is kept as it was drawn.",
            style="red", markup=False,
        )  # fmt: skip
    before, after = len(failed.plan.events), len(shrunk.end.plan.events)
    console.print(f"Shrunk from {before} events to {after}:", markup=False, highlight=False)
    for event in shrunk.end.plan.events:
        console.print(f"  {event.described()}", markup=False, highlight=False)
    console.print(f"Plan: {shrunk.plan_file}\nPage: {shrunk.page_file}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"Again: python -m lab.simulation --plan {shrunk.plan_file}", markup=False, highlight=False, soft_wrap=True)


def print_broken(console: Console, title: str, broken: Sequence[FoundBroken]) -> None:
    """Prints the violated guarantees of a simulation."""
    console.print(title, style="bold red", markup=False, highlight=False)
    for one in broken[:_MAX_BROKEN]:
        console.print(f"  {one.promise}", style="red", markup=False, highlight=False)
        console.print(f"    {one.text}", markup=False, highlight=False)
    if len(broken) > _MAX_BROKEN:
        console.print(f"  and {len(broken) - _MAX_BROKEN} more", markup=False, highlight=False)


def print_world(console: Console, end: WorldEnd) -> None:
    """Prints a summary of a simulation's events, its result and its digest."""
    shape = ", ".join(f"{name} {value}" for name, value in sorted(end.plan.shape.items()))
    console.print(f"World {end.seed}: {len(end.plan.events)} events; {shape}", markup=False, highlight=False)
    short = [it for it in end.happenings if it.kind in _IN_SHORT]
    for it in short[:_MAX_HAPPENINGS]:
        console.print(_line(it), markup=False, highlight=False)
    left = len(end.happenings) - min(len(short), _MAX_HAPPENINGS)
    console.print(f"and {left:,} further happenings, in {end.simulated_s:,.0f} simulated seconds", markup=False, highlight=False)
    console.print(table_of_fired(end.fired, ()))
    if end.broken:
        print_broken(console, "It breaks a promise", end.broken)
    else:
        console.print("Every promise held", style="green")
    console.print(f"Digest: {end.digest}", markup=False, highlight=False)


def print_digests(console: Console, different: Sequence[DifferentDigests], seeds: int) -> None:
    """Prints the seeds that were not reproducible, or reports that all seeds were reproducible."""
    for one in different:
        console.print(f"World {one.seed} is not the same each time: {', '.join(one.digests)}", style="red", markup=False)
    if not different:
        console.print(f"{seeds:,} seeds, each hashed twice in fresh interpreters: equal", style="green", markup=False)


def _line(happening: RecordedEvent) -> Text:
    line = Text(f"{happening.at_ns / 1e9:10.3f} s  {happening.process:<14} {happening.text}")
    line.stylize("red" if happening.kind in ("fault", "death", "violation") else "dim")
    return line
