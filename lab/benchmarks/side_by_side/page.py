"""Puts results into docs/benchmarks.md, which is where the project keeps them: a table, and a summary that follows from it."""

import textwrap
from collections.abc import Mapping, Sequence

from lab.benchmarks.side_by_side.brokers import ASYNC, SYNC, Side
from lab.benchmarks.side_by_side.plan import Kind, Load, State
from lab.benchmarks.side_by_side.report import COLUMNS, markdown_row

PAGE_COLUMNS = (*COLUMNS, "measured")
BEGIN, END = "<!-- results: written by make bench BENCH=--page -->\n", "<!-- end of results -->"
_HEAD = [markdown_row(PAGE_COLUMNS), markdown_row(("---",) * len(PAGE_COLUMNS))]
_IN_FLIGHT = (1, 32, 128)
_MAX_LINE_LENGTH = 130

Table = Mapping[str, Mapping[str, Mapping[str, str]]]
"""Cells, keyed by load, broker and column."""


def with_results(page: str, rows: Sequence[Sequence[str]], day: str) -> str:
    """Returns the page with these rows of Results in its table.

    The rows of a load replace the earlier rows of that load. New loads are added at the end. `day` is when they were measured.
    Raises ValueError if the page has no results with the current columns.
    """
    before, _, rest = page.partition(BEGIN)
    groups = {**_groups(_lines_of(page)), **_groups([markdown_row((*row, day)) for row in rows])}
    table = [*_HEAD, *(line for group in groups.values() for line in group)]
    lines = [*table, "", *_summary(table_in(groups)), ""]
    return before + BEGIN + "".join(f"{line}\n" for line in lines) + END + rest.partition(END)[2]


def table_of(page: str) -> Table:
    """Returns the page's table. Raises ValueError as with_results does."""
    return table_in(_groups(_lines_of(page)))


def table_in(groups: Mapping[str, Sequence[str]]) -> Table:
    """Returns the table that has these lines, keyed by load."""

    def cells_of(line: str) -> Mapping[str, str]:
        return dict(zip(PAGE_COLUMNS, (cell.strip() for cell in line.split("|")[1:-1]), strict=True))

    return {name: {cells["broker"]: cells for cells in map(cells_of, lines)} for name, lines in groups.items()}


def _lines_of(page: str) -> list[str]:
    """Returns the lines of the page's table, without its head."""
    results = page.partition(BEGIN)[2].partition(END)[0].splitlines()
    if results[: len(_HEAD)] != _HEAD:
        raise ValueError(f"the page has no results with the columns {', '.join(PAGE_COLUMNS)}")
    return [line for line in results[len(_HEAD) :] if line.startswith("|")]


def _groups(lines: Sequence[str]) -> dict[str, list[str]]:
    """Returns the lines of each load, keyed by its name. Only the first line of a load has its name."""
    groups: dict[str, list[str]] = {}
    name = ""
    for line in lines:
        name = line.split("|")[1].strip() or name
        groups.setdefault(name, []).append(line)
    return groups


def _summary(table: Table) -> list[str]:
    ours = {load: brokers[Side.OURS.value] for load, brokers in table.items() if Side.OURS.value in brokers}
    below = [
        f"{load.rpartition(', ')[0]} {cells['ratio']} (wanted {cells['wanted']})"
        for load, cells in ours.items()
        if cells["ratio"] and float(cells["ratio"]) < float(cells["wanted"])
    ]
    said = [_transactions(ours, flush, column, of) for flush in (ASYNC, SYNC) for column, of in _COMPARED]
    said.append(f"Below the target: {'; '.join(below) or 'none'}.")
    return [line for text in filter(None, said) for line in _item(text)]


_COMPARED = (("ratio", "as multiples of Apache's"), ("of floor", "as shares of the floor"))


def _transactions(ours: Mapping[str, Mapping[str, str]], flush: str, column: str, of: str) -> str:
    """Returns a sentence about a column of the rows of transactions, or an empty string if they were not all measured."""
    in_states = []
    for state in (State.WARM, State.COLD):
        loads = [Load(Kind.TRANSACTIONS, flush, number, state=state) for number in _IN_FLIGHT]
        values = [ours.get(f"{load.name}, {load.unit}", {}).get(column, "") for load in loads]
        if all(values):
            in_states.append(f"{', '.join(values)} {state}")
    return f"Transactions with {flush} and 1, 32, 128 in flight, {of}: {'; '.join(in_states)}." if in_states else ""


def _item(text: str) -> list[str]:
    return textwrap.wrap(f"- {text}", _MAX_LINE_LENGTH, subsequent_indent="  ", break_on_hyphens=False)
