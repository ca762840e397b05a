"""The race's tables, for a terminal."""

from collections.abc import Iterator, Mapping, Sequence

from rich.table import Table
from rich.text import Text

from tutorials.race.faults import Fault
from tutorials.race.results.figures import Figures
from tutorials.race.way import Way


def titles(ways: Sequence[type[Way]], figures: Sequence[Figures]) -> Mapping[str, str]:
    """Returns a row's title by the way's name: with its number of orders if others had more."""
    orders = {one.way: one.orders for one in figures}
    most = max(orders.values(), default=0)
    return {
        way.name: way.title if orders.get(way.name, most) == most else f"{way.title}: {orders[way.name]} orders" for way in ways
    }


def table_of_faults(ways: Sequence[type[Way]], faults: Sequence[Fault], figures: Sequence[Figures]) -> Table:
    """Returns a row for each way, a column for each fault: orders whose databases disagree in the end."""
    table = Table(title="-n: orders without their credit   +n: credits without an order", show_lines=True)
    table.add_column("way", min_width=20)
    for fault in faults:
        table.add_column(fault.heading, justify="right")
    found = {(one.way, one.fault): one for one in figures}
    called = titles(ways, figures)
    for way in ways:
        table.add_row(called[way.name], *[_wrong(found[way.name, fault.value]) for fault in faults])
    return table


def table_of_costs(ways: Sequence[type[Way]], figures: Sequence[Figures]) -> Table:
    """Returns a row for each way: the wrong orders in all its cells, and its costs."""
    table = Table(title="all faults together, and what each way costs")
    table.add_column("way")
    for title in ("missing", "phantom", "doubled without a unique key", "taken while the broker is down"):
        table.add_column(title, justify="right")
    for title in ("p50 without fault", "p99 without fault", "p99 worst cell", "extra rows", "extra records"):
        table.add_column(title, justify="right")
    called = titles(ways, figures)
    for way in ways:
        of_way = [one for one in figures if one.way == way.name]
        table.add_row(called[way.name], *_costs(of_way))
    return table


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
    """Formats a duration for people."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    return f"{milliseconds / 1000:.1f} s"


def _wrong(figures: Figures) -> Text:
    if not figures.wrong:
        return Text("0", style="green")
    kinds = [f"-{figures.missing}" if figures.missing else "", f"+{figures.phantom}" if figures.phantom else ""]
    return Text(" ".join(filter(None, kinds)), style="bold red")


def table_of_cells(figures: Sequence[Figures]) -> Table:
    """Returns a row for each cell, with all its figures."""
    table = Table()
    for title in ("way", "fault"):
        table.add_column(title, no_wrap=True)
    for title in ("orders", "stored", "missing", "phantom", "doubled without a unique key", "taken while down", "p50", "p99"):
        table.add_column(title, justify="right")
    for one in figures:
        down = f"{one.taken_while_down} of {one.asked_while_down}" if one.asked_while_down else "-"
        counts = map(str, (one.orders, one.stored, one.missing, one.phantom, one.doubled))
        table.add_row(one.way, one.fault, *counts, down, duration(one.p50_ms), duration(one.p99_ms))
    return table
