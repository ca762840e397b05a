"""Formats the results: the faults found, the times, the comparison of tools, and how the times grow with the number of orders."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from lab.benchmarks.reconciliation.runs import Run
from lab.benchmarks.reconciliation.two_tables.differences import rows_in_books
from lab.benchmarks.reconciliation.two_tables.rounds import ToolResult, TwoTables
from lab.benchmarks.reconciliation.two_tables.tools import Tool

_WRONG = "bold red"
_WHOLE = "ours, with its commit log"


def faults_table(run: Run) -> Table:
    """Returns a table with the number of injected and found faults of each kind. The title contains the time of the run."""
    took = f"{run.usage.wall_s:.0f} s, {run.usage.cpu_s:.0f} s of CPU"
    table = Table(title=f"{run.orders:,} orders in {took}: {run.invented} false findings")
    table.add_column("fault")
    for name in ("injected", "found, class and cause right"):
        table.add_column(name, justify="right")
    for fault in run.faults:
        style = "" if fault.found == fault.injected else _WRONG
        table.add_row(fault.fault.value, f"{fault.injected:,}", f"{fault.found:,}", style=style)
    return table


def times_table(runs: Sequence[Run]) -> Table:
    """Returns a table with a row for each run: orders, Spark workers, time, orders per second, CPU time per order, memory."""
    table = Table(title="python -m pipelines reconcile, with its commit log")
    for name in ("orders", "workers", "wall s", "orders/s", "CPU s", "CPU µs an order", "peak GB"):
        table.add_column(name, justify="right")
    for run in runs:
        usage = run.usage
        table.add_row(
            f"{run.orders:,}",
            "one process" if run.workers is None else str(run.workers),
            f"{usage.wall_s:.0f}",
            f"{run.orders / usage.wall_s:,.0f}",
            f"{usage.cpu_s:.0f}",
            f"{usage.cpu_s / run.orders * 1e6:.0f}",
            f"{usage.peak_bytes / 1e9:.1f}",
        )
    return table


def two_tables_table(two_tables: TwoTables) -> Table:
    """Returns a table of the tools: time, rows per second, CPU time, memory, and the ratio to our reconciliation."""
    table = Table(
        box=SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 1, 0, 0),
        title=f"{two_tables.orders:,} orders compared with their credits: order id, customer, amount;"
        f" median, min and max of {max(len(result.runs) for result in two_tables.results)} runs",
    )
    table.add_column("tool")
    for name in ("wall s", "least", "most", "rows/s", "CPU s", "peak GB", "ours/theirs", "found"):
        table.add_column(name, justify="right")
    for result in two_tables.results:
        table.add_row(*_tool_row(two_tables, result), style="" if result.is_right else _WRONG)
    return table


def _tool_row(two_tables: TwoTables, result: ToolResult) -> tuple[str, ...]:
    min_s, max_s = result.min_and_max_s
    ours = two_tables.result(Tool.OURS)
    ratio = "" if ours is None or result.tool is Tool.OURS else f"{ours.wall_s / result.wall_s:.2f}"
    return (
        result.tool.value,
        f"{result.wall_s:.1f}",
        f"{min_s:.1f}",
        f"{max_s:.1f}",
        f"{rows_in_books(two_tables.orders) / result.wall_s:,.0f}",
        f"{result.cpu_s:.0f}",
        f"{result.peak_bytes / 1e9:.1f}",
        ratio,
        "all" if result.is_right else "wrong",
    )


def growth_table(runs: Sequence[Run], compared: Sequence[TwoTables]) -> Table | None:
    """Returns a table of the times relative to the smallest number of orders. Returns None if there is only one size."""
    walls = [
        (_WHOLE if run.workers is None else f"{_WHOLE}, {run.workers} workers", run.orders, run.usage.wall_s) for run in runs
    ]
    walls += [(result.tool.value, two_tables.orders, result.wall_s) for two_tables in compared for result in two_tables.results]
    grown = [
        (name, f"{orders:,}", f"{orders / first_orders:.1f}", f"{wall_s / first_s:.1f}")
        for name, orders, wall_s in walls
        for first_orders, first_s in [min((other, other_s) for of, other, other_s in walls if of == name)]
        if orders > first_orders
    ]
    if not grown:
        return None
    table = Table(title="Growth relative to the smallest books")
    table.add_column("tool")
    for name in ("orders", "times the orders", "times the time"):
        table.add_column(name, justify="right")
    for row in grown:
        table.add_row(*row)
    return table
