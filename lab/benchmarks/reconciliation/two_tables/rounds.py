"""Runs all tools in turn in each round, and summarizes their runs."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lab.benchmarks.reconciliation.runs import RunFailed
from lab.benchmarks.reconciliation.two_tables.differences import Differences, in_books
from lab.benchmarks.reconciliation.two_tables.tools import Tool, ToolRun


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The results of all runs of one tool on the same number of orders."""

    tool: Tool
    runs: tuple[ToolRun, ...]
    is_right: bool
    """True if each run found exactly the injected faults."""

    @property
    def wall_s(self) -> float:
        """The median wall time in seconds, including the start of the process."""
        return statistics.median(run.usage.wall_s for run in self.runs)

    @property
    def min_and_max_s(self) -> tuple[float, float]:
        """The shortest and the longest wall time in seconds."""
        times = [run.usage.wall_s for run in self.runs]
        return min(times), max(times)

    @property
    def cpu_s(self) -> float:
        """The median CPU time in seconds."""
        return statistics.median(run.usage.cpu_s for run in self.runs)

    @property
    def peak_bytes(self) -> int:
        """The peak memory of all runs in bytes."""
        return max(run.usage.peak_bytes for run in self.runs)


@dataclass(frozen=True, slots=True)
class TwoTables:
    """The results of all tools on `orders` orders. `failed` contains the reasons of failed runs."""

    orders: int
    results: tuple[ToolResult, ...]
    failed: tuple[str, ...] = field(default=())

    @property
    def is_right(self) -> bool:
        """True if all tools that ran found exactly the injected faults."""
        return not self.failed and all(result.is_right for result in self.results)

    def result(self, tool: Tool) -> ToolResult | None:
        """Returns the result of a tool, or None if the tool has no result."""
        return next((result for result in self.results if result.tool is tool), None)


def compared_in_turn(orders: int, tools: Sequence[Tool], rounds: int, run: Callable[[Tool], ToolRun]) -> TwoTables:
    """Runs each tool once per round, so that other load affects all tools equally. If a tool fails, it is not run again."""
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
