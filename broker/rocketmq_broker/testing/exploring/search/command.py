"""Implements the actions of the command line. Each returns the exit code of the command."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from rocketmq_broker.message.text.printable import printable
from rocketmq_broker.testing.exploring.search.processes import PATIENCE_S, PlayingProcesses
from rocketmq_broker.testing.exploring.search.report import (
    described_event,
    described_failure,
    described_totals,
    shrink_failure,
    world_report,
    write_failure,
    write_text,
)
from rocketmq_broker.testing.exploring.search.standing import Standing
from rocketmq_broker.testing.exploring.search.worlds import WorldEnd, Worlds, failed_among
from rocketmq_broker.testing.simulation.page import page_of, picture_of
from rocketmq_broker.testing.simulation.plan import Plan

ENOUGH_TO_FIRE: Final = 1000
"""The number of worlds in which each kind of fault must occur."""
_HASH_SEEDS: Final = ("1", "20261123")
_MAX_HAPPENINGS: Final = 60
_IN_SHORT: Final = frozenset({"fault", "death", "start", "error", "violation"})


@dataclass(frozen=True, slots=True)
class SearchCommand:
    """The actions of the command for the worlds of one test."""

    worlds: Worlds
    console: Console
    folder: Path
    """The folder for results."""
    version: str
    """The version of the code. Results of other versions are ignored."""
    repeat: str
    """The command that takes the options --seed and --plan."""
    processes: int | None = None
    """The number of processes, or None for the number of CPUs."""
    shrinking_tries: int = 600
    """The maximum number of worlds that are run to shrink a failed one."""
    patience_s: float = PATIENCE_S
    """The time limit of one world in real seconds."""

    def search(self, wanted: range, *, goes_on: bool = False) -> int:
        """Runs the worlds of the wanted seeds that have no result yet. Returns the exit code.

        The code is 0 if every guarantee held and every kind of fault occurred, otherwise 1. Stops at the first failure unless
        `goes_on` is True.
        """
        standing = Standing(self.folder / "simulation" / f"{self.version}.jsonl")
        known, missing = [*standing.totals.failed], standing.missing(wanted)
        begun_s, before = time.monotonic(), standing.totals.worlds
        with PlayingProcesses(self.worlds, self.processes, patience_s=self.patience_s) as processes:
            with self._bar("worlds", len(wanted), len(wanted) - len(missing)) as advance:

                def keep(end: WorldEnd) -> None:
                    standing.add(end)
                    advance()

                failed = failed_among(processes.play_all(missing), keep, goes_on=goes_on)
            totals, real_s = standing.totals, time.monotonic() - begun_s
            silent = totals.never_fired if totals.worlds >= ENOUGH_TO_FIRE else []
            self._print(*described_totals(totals, real_s, totals.worlds - before))
            worlds = max(1, totals.worlds)
            self._print(
                f"kept for this code: {totals.worlds:,} worlds, {totals.simulated_s / worlds:,.0f} simulated seconds "
                f"and {totals.cpu_s / worlds:.2f} seconds of a processor each"
            )
            self._shrink_first_of_each_failure(processes, failed)
        now = {end.seed for end in failed}
        for one in known:
            if one.seed not in now:
                self._print(f"World {one.seed} failed in an earlier run of this code: {one.failure}", style="red")
        if silent:
            self._print(f"In {totals.worlds:,} worlds this never happened, so that they prove nothing about it:", style="red")
            self._print(*(f"  {name}" for name in silent), style="red")
        if failed or known or silent:
            return 1
        self._print("Every promise held", style="green")
        return 0

    def play_seed(self, seed: int, picture: Path | None = None) -> int:
        """Runs the world of a seed, and writes its page and its picture. Returns 0 if every guarantee held, otherwise 1."""
        return self._play(seed, self.worlds.file_name(seed), f"{self.repeat} --seed {seed}", picture)

    def play_plan(self, plan: Plan, file: Path, picture: Path | None = None) -> int:
        """Runs the plan in a file, and writes its page and its picture. Returns 0 if every guarantee held, otherwise 1."""
        return self._play(plan, file.stem, f"{self.repeat} --plan {file}", picture)

    def check_digests(self, seeds: range) -> int:
        """Runs the world of each seed twice in new interpreters. Returns 0 if the digests are equal, otherwise 1."""
        found: dict[int, list[str]] = {seed: [] for seed in seeds}
        with self._bar("worlds", len(_HASH_SEEDS) * len(seeds)) as advance:
            for hash_seed in _HASH_SEEDS:
                with PlayingProcesses(self.worlds, self.processes, environment={"PYTHONHASHSEED": hash_seed}) as processes:
                    for end in processes.play_all(seeds):
                        found[end.seed].append(end.digest or end.broken[0].text)
                        advance()
        different = {seed: digests for seed, digests in found.items() if len(set(digests)) > 1}
        for seed, digests in different.items():
            self._print(f"World {seed} is not the same each time: {', '.join(digests)}", style="red")
        if not different:
            self._print(f"{len(seeds):,} seeds, each hashed twice in fresh interpreters: equal", style="green")
        return 1 if different else 0

    def _play(self, plan: Plan | int, name: str, how_to_repeat: str, picture: Path | None = None) -> int:
        with PlayingProcesses(self.worlds, 1) as processes, self.console.status("the world plays"):
            end = processes.play(plan, True)
        self._print_world(end)
        report, page = world_report(self.worlds, end, how_to_repeat), self.folder / f"{name}.html"
        write_text(page, page_of(report))
        if picture is not None:
            write_text(picture, picture_of(report))
        self._print(f"Page: {page}")
        return 1 if end.broken else 0

    def _print_world(self, end: WorldEnd) -> None:
        """Prints a summary of a world's events, its result and its digest."""
        shape = ", ".join(f"{name} {value}" for name, value in sorted(end.plan.shape.items()))
        self._print(f"World {end.seed}: {len(end.plan.events)} events; {shape}")
        short = [it for it in end.happenings if it.kind in _IN_SHORT][:_MAX_HAPPENINGS]
        for it in short:
            self._print(described_event(it), style="red" if it.kind in ("fault", "death", "violation") else "dim")
        self._print(f"and {len(end.happenings) - len(short):,} further events, in {end.simulated_s:,.0f} simulated seconds")
        if end.broken:
            self._print(*described_failure(self.worlds, end), style="red")
        else:
            self._print("Every promise held", style="green")
        self._print(f"Digest: {end.digest}")

    def _shrink_first_of_each_failure(self, processes: PlayingProcesses, failed: list[WorldEnd]) -> None:
        reported: set[tuple[str, ...]] = set()
        for end in failed:
            if end.broken[0].mark in reported:
                self._print(f"World {end.seed} fails in the same way: {end.broken[0]}", style="red")
                continue
            reported.add(end.broken[0].mark)
            with self._bar(f"world {end.seed} failed; shrinking it", self.shrinking_tries) as advance:

                def play(plan: Plan | int, is_recorded: bool, advance: Callable[[], None] = advance) -> WorldEnd:
                    advance()
                    return processes.play(plan, is_recorded)

                found = shrink_failure(self.worlds, end, play, tries=self.shrinking_tries)
            plan_file = self.folder / "simulation" / "failed" / f"{self.worlds.file_name(end.seed)}.json"
            text = write_failure(self.worlds, found, plan_file.with_suffix(".html"), f"{self.repeat} --plan {plan_file}")
            write_text(plan_file, found.shrunk.plan.written())
            heading, _, rest = text.partition("\n")
            self._print(heading, style="bold red")
            self._print(rest)

    def _print(self, *lines: str, style: str | None = None) -> None:
        for line in (line for text in lines for line in text.split("\n")):
            self.console.print(printable(line), style=style, markup=False, emoji=False, highlight=False, soft_wrap=True)

    @contextmanager
    def _bar(self, title: str, total: int, done: int = 0) -> Iterator[Callable[[], None]]:
        """Shows a progress bar during the block. Yields a function that advances it by one."""
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
        with Progress(*columns, console=self.console, transient=True) as progress:
            bar = progress.add_task(title, total=total, completed=done)
            yield lambda: progress.advance(bar)
