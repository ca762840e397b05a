"""Shrinks a failed simulation, and writes its plan and page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab.simulation.plans.fault_table import FAULTS
from lab.simulation.search.pages import page_text
from lab.simulation.search.processes import PlayingProcesses
from lab.simulation.search.worlds import WorldEnd
from lab.simulation.shapes import SIMPLEST
from rocketmq_broker.testing.simulation.plan import Plan
from rocketmq_broker.testing.simulation.shrinking import ShrinkingProgress, shrink, without_last_fault


@dataclass(frozen=True, slots=True)
class ShrunkFailure:
    """The smallest simulation found with the same failure."""

    end: WorldEnd
    is_repeated: bool
    """True if the failure was repeatable. The plan of an unrepeatable failure is not shrunk."""
    plan_file: Path
    page_file: Path


def keep_failure(
    processes: PlayingProcesses,
    failed: WorldEnd,
    folder: Path,
    *,
    tries: int,
    on_progress: Callable[[ShrinkingProgress], None],
) -> ShrunkFailure:
    """Shrinks a failed simulation by running at most `tries` simulations. Ignores simulations that fail for another reason.

    Writes the plan and the page of the smallest simulation into the folder. The seed is part of the file names.
    """

    def fails(plan: Plan) -> bool:
        return processes.play(plan).fails_like(failed)

    found = shrink(failed.plan, fails, budget=tries, simplest=SIMPLEST, on_progress=on_progress)
    end = processes.play(found.plan, with_happenings=True)
    beside = without_last_fault(found.plan, lambda event: event.what in FAULTS)
    folder.mkdir(parents=True, exist_ok=True)
    plan_file, page_file = folder / f"{failed.seed}.json", folder / f"{failed.seed}.html"
    plan_file.write_text(found.plan.written())
    page_file.write_text(
        page_text(
            end,
            None if beside is None else processes.play(beside, with_happenings=True),
            f"python -m lab.simulation --plan {plan_file}",
        )
    )
    return ShrunkFailure(end if end.broken else failed, found.is_repeated, plan_file, page_file)
