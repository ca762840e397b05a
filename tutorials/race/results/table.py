"""Formats the results of the comparison as tables for a terminal."""

from collections.abc import Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from tutorials.race.faults import Fault
from tutorials.race.results.figures import Figures
from tutorials.race.way import Way

_LABEL = 24
"""The width in characters of a column of names, including borders."""
_COLUMN = 12
"""The width in characters of a column of figures, including borders. The longest word of the headings fits into it."""


def titles(ways: Sequence[type[Way]], figures: Sequence[Figures]) -> Mapping[str, str]:
    """Returns the row title of each approach. The title includes the number of orders if other approaches had more orders."""
    orders = {one.way: one.orders for one in figures}
    most = max(orders.values(), default=0)
    return {
        way.name: way.title if orders.get(way.name, most) == most else f"{way.title}: {orders[way.name]} orders" for way in ways
    }


def tables_of_faults(ways: Sequence[type[Way]], faults: Sequence[Fault], figures: Sequence[Figures], width: int) -> list[Table]:
    """Returns tables of wrong orders, with a row for each approach and a column for each fault."""
    found = {(one.way, one.fault): one for one in figures}
    called = titles(ways, figures)
    rows = [([called[way.name]], [_wrong(found[way.name, fault.value]) for fault in faults]) for way in ways]
    title = "-n: orders without their credit   +n: credits without an order"
    return _tables(title, ["way"], [fault.heading for fault in faults], rows, width, show_lines=True)


def tables_of_costs(ways: Sequence[type[Way]], figures: Sequence[Figures], width: int) -> list[Table]:
    """Returns tables of the wrong orders and the costs of each approach."""
    columns = ["missing", "phantom", "doubled without a unique key", "taken while the broker is down"]
    columns += ["p50 without fault", "p99 without fault", "p99 worst cell", "extra rows", "extra records"]
    called = titles(ways, figures)
    rows = [([called[way.name]], list(_costs([one for one in figures if one.way == way.name]))) for way in ways]
    return _tables("all faults together, and what each way costs", ["way"], columns, rows, width)


def _tables(
    title: str,
    labels: Sequence[str],
    columns: Sequence[str],
    rows: Sequence[tuple[Sequence[str], Sequence[RenderableType]]],
    width: int,
    *,
    show_lines: bool = False,
) -> list[Table]:
    """Returns one table, or several tables with the same labels if the columns do not fit into `width` characters."""
    at_once = max(1, (width - _LABEL * len(labels)) // _COLUMN)
    tables = []
    for first in range(0, len(columns), at_once):
        table = Table(title=title if first == 0 else None, show_lines=show_lines)
        for label in labels:
            table.add_column(label, min_width=_LABEL - 4 if len(labels) == 1 else None, no_wrap=len(labels) > 1)
        for column in columns[first : first + at_once]:
            table.add_column(column, justify="right", max_width=_COLUMN - 3)
        for row_labels, cells in rows:
            table.add_row(*row_labels, *cells[first : first + at_once])
        tables.append(table)
    return tables


def _costs(cells: Sequence[Figures]) -> Iterator[str]:
    yield str(sum(one.missing for one in cells))
    yield str(sum(one.phantom for one in cells))
    yield str(sum(one.doubled for one in cells))
    asked = sum(one.asked_while_down for one in cells)
    yield f"{sum(one.taken_while_down for one in cells)} of {asked}" if asked else "-"
    usual = next((one for one in cells if one.fault == Fault.NONE.value), None)
    yield duration(usual.p50_ms) if usual else "-"
    yield duration(usual.p99_ms) if usual else "-"
    yield duration(max((one.p99_ms for one in cells), default=0.0))
    yield f"{usual.extra_rows:g}" if usual else "-"
    yield f"{usual.extra_records:g}" if usual else "-"


def duration(milliseconds: float) -> str:
    """Formats a duration: in ms below one second, otherwise in s."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    return f"{milliseconds / 1000:.1f} s"


def _wrong(figures: Figures) -> Text:
    if not figures.wrong:
        return Text("0", style="green")
    kinds = [f"-{figures.missing}" if figures.missing else "", f"+{figures.phantom}" if figures.phantom else ""]
    return Text(" ".join(filter(None, kinds)), style="bold red")


def tables_of_cells(figures: Sequence[Figures], width: int) -> list[Table]:
    """Returns tables with all figures of each combination of approach and fault."""
    columns = ["orders", "stored", "missing", "phantom", "doubled without a unique key", "taken while down", "p50", "p99"]
    rows = []
    for one in figures:
        down = f"{one.taken_while_down} of {one.asked_while_down}" if one.asked_while_down else "-"
        counts = map(str, (one.orders, one.stored, one.missing, one.phantom, one.doubled))
        rows.append(([one.way, one.fault], [*counts, down, duration(one.p50_ms), duration(one.p99_ms)]))
    return _tables("", ["way", "fault"], columns, rows, width)
