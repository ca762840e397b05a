"""All tools in turn, round after round, and what their runs amount to."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.reconciliation.runs import RunFailed
from benchmarks.reconciliation.two_tables.differences import Differences, in_books
from benchmarks.reconciliation.two_tables.tools import Tool, ToolRun


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The runs of one tool on books of one size."""

    tool: Tool
    runs: tuple[ToolRun, ...]
    is_right: bool
    """Whether each run found what was injected, and no more."""

    @property
    def wall_s(self) -> float:
        """The median, the start of the process included."""
        return statistics.median(run.usage.wall_s for run in self.runs)

    @property
    def least_and_most_s(self) -> tuple[float, float]:
        """Of the runs' wall times."""
        times = [run.usage.wall_s for run in self.runs]
        return min(times), max(times)

    @property
    def cpu_s(self) -> float:
        """The median."""
        return statistics.median(run.usage.cpu_s for run in self.runs)

    @property
    def peak_bytes(self) -> int:
        """The most of all runs."""
        return max(run.usage.peak_bytes for run in self.runs)


@dataclass(frozen=True, slots=True)
class TwoTables:
    """All tools on books of so many orders; `failed` says why runs gave no result."""

    orders: int
    results: tuple[ToolResult, ...]
    failed: tuple[str, ...] = field(default=())

    @property
    def is_right(self) -> bool:
        """Whether all that ran found what was injected."""
        return not self.failed and all(result.is_right for result in self.results)

    def result(self, tool: Tool) -> ToolResult | None:
        """The result of one tool; None if it has none."""
        return next((result for result in self.results if result.tool is tool), None)


def compared_in_turn(orders: int, tools: Sequence[Tool], rounds: int, run: Callable[[Tool], ToolRun]) -> TwoTables:
    """Each round runs each tool once, so that what else the machine does falls on all of them. A tool that fails runs no more."""
    done: dict[Tool, list[ToolRun]] = {tool: [] for tool in tools}
    failed: dict[Tool, str] = {}
    for _ in range(rounds):
        for tool in tools:
            if tool in failed:
                continue
            try:
                done[tool].append(run(tool))
            except RunFailed as error:
                failed[tool] = f"{tool.value}: {error}"
    expected = in_books(orders)
    return TwoTables(
        orders,
        tuple(ToolResult(tool, tuple(runs), _is_right(runs, expected)) for tool, runs in done.items() if runs),
        tuple(failed.values()),
    )


def _is_right(runs: Sequence[ToolRun], expected: Differences) -> bool:
    return all(run.found == expected for run in runs)
