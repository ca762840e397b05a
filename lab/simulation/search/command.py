"""Implements the actions of `make simulate`. Each returns the exit code of the command."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from lab.simulation.plans.fault_table import FAULTS
from lab.simulation.search.digests import check_digests
from lab.simulation.search.failure import keep_failure
from lab.simulation.search.pages import page_text, picture_text
from lab.simulation.search.printing import print_digests, print_failure, print_never_fired, print_totals, print_world
from lab.simulation.search.processes import PATIENCE_S, PlayingProcesses
from lab.simulation.search.searching import never_fired, play_missing
from lab.simulation.search.standing import FailedSeed, Standing
from lab.simulation.search.worlds import WorldEnd, Worlds
from rocketmq_broker.testing.simulation.plan import Plan
from rocketmq_broker.testing.simulation.shrinking import ShrinkingProgress


@dataclass(frozen=True, slots=True)
class SimulationCommand:
    """The actions of the command for one kind of simulation."""

    worlds: Worlds
    console: Console
    folder: Path
    """The folder for results."""
    version: str
    """The version of the code. Results of other versions are ignored."""
    processes: int | None = None
    """The number of processes, or None for the number of CPUs."""
    shrinking_tries: int = 600
    """The maximum number of simulations that are run to shrink a failed one."""
    patience_s: float = PATIENCE_S
    """The time limit of one simulation in real seconds."""

    def search(self, wanted: range, *, goes_on: bool = False) -> int:
        """Simulates the wanted seeds that have no result yet. Returns the exit code.

        The code is 0 if every guarantee held and every kind of fault occurred, otherwise 1. Stops at the first failure unless
        `goes_on` is True.
        """
        standing = Standing(self.folder / "simulation" / f"{self.version}.jsonl")
        known = standing.totals.failed
        left = sum(map(len, standing.missing(wanted)))
        begun_s, played = time.monotonic(), 0
        with PlayingProcesses(self.worlds, self.processes, patience_s=self.patience_s) as processes:
            with self._bar("worlds", len(wanted), len(wanted) - left) as (progress, bar):

                def count(end: WorldEnd) -> None:
                    nonlocal played
                    played += 1
                    progress.advance(bar)

                try:
                    failed = play_missing(processes, standing, wanted, goes_on=goes_on, on_end=count)
                finally:
                    real_s = time.monotonic() - begun_s
            totals = standing.totals
            print_totals(self.console, totals, played=played, real_s=real_s, processes=processes.count)
            self._shrink_first_of_each_failure(processes, failed)
        self._tell_known(known, failed)
        if silent := never_fired(totals.fired, totals.worlds, FAULTS):
            print_never_fired(self.console, silent, totals.worlds)
        if failed or known or silent:
            return 1
        self.console.print("Every promise held", style="green")
        return 0

    def play_seed(self, seed: int) -> int:
        """Runs the simulation of a seed and writes its page. Returns 0 if every guarantee held, otherwise 1."""
        return self._play(seed, self.folder / f"world-{seed}.html", f"make simulate SEED={seed}")

    def play_plan(self, plan: Plan, file: Path, picture: Path | None = None) -> int:
        """Runs the plan in a file, and writes its page and its picture. Returns 0 if every guarantee held, otherwise 1."""
        return self._play(plan, self.folder / f"world-{file.stem}.html", f"python -m lab.simulation --plan {file}", picture)

    def check_digests(self, seeds: range) -> int:
        """Simulates each seed twice in new interpreters. Returns 0 if the digests are equal, otherwise 1."""
        with self._bar("worlds", 2 * len(seeds)) as (progress, bar):
            different = check_digests(self.worlds, seeds, self.processes, lambda end: progress.advance(bar))
        print_digests(self.console, different, len(seeds))
        return 1 if different else 0

    def _play(self, plan: Plan | int, page_file: Path, how_to_repeat: str, picture: Path | None = None) -> int:
        with PlayingProcesses(self.worlds, 1) as processes, self.console.status("the world plays"):
            end = processes.play(plan, with_happenings=True)
        print_world(self.console, end)
        page_file.parent.mkdir(parents=True, exist_ok=True)
        page_file.write_text(page_text(end, None, how_to_repeat))
        if picture is not None:
            picture.write_text(picture_text(end))
        self.console.print(f"Page: {page_file}", markup=False, highlight=False, soft_wrap=True)
        return 1 if end.broken else 0

    def _shrink_first_of_each_failure(self, processes: PlayingProcesses, failed: list[WorldEnd]) -> None:
        told: set[tuple[str, str]] = set()
        for end in failed:
            first = end.broken[0]
            if first.mark in told:
                self.console.print(f"World {end.seed} breaks it, too: {first.promise}", style="red", markup=False)
                continue
            told.add(first.mark)
            with self._bar(f"world {end.seed} broke a promise; shrinking it", self.shrinking_tries) as (progress, bar):

                def show(done: ShrinkingProgress, progress: Progress = progress, bar: TaskID = bar) -> None:
                    told_size = f"shrinking world {done.smallest.seed}: {len(done.smallest.events)} events"
                    progress.update(bar, completed=done.tried, description=told_size)

                kept = keep_failure(
                    processes, end, self.folder / "simulation" / "failed", tries=self.shrinking_tries, on_progress=show
                )
            print_failure(self.console, end, kept)

    def _tell_known(self, known: list[FailedSeed], failed: list[WorldEnd]) -> None:
        now = {end.seed for end in failed}
        for one in known:
            if one.seed not in now:
                self.console.print(
                    f"World {one.seed} failed in an earlier run of this code: {one.promise} {one.text}", style="red", markup=False
                )

    @contextmanager
    def _bar(self, title: str, total: int, done: int = 0) -> Iterator[tuple[Progress, TaskID]]:
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
        with Progress(*columns, console=self.console, transient=True) as progress:
            yield progress, progress.add_task(title, total=total, completed=done)
