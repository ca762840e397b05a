"""The command line of the comparison: `python -m tutorials.race --help`."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from rocketmq_broker.stop_signals import until_interrupted
from tutorials.race.brokers import BrokerCannotRun
from tutorials.race.brokers.apache import ApacheBroker, missing_for_apache
from tutorials.race.entries import NoSuchEntry, cells, ways_with
from tutorials.race.faults import Fault
from tutorials.race.results.figures import Figures
from tutorials.race.results.picture import picture
from tutorials.race.results.progress import ProgressLines
from tutorials.race.results.record import Record, kept
from tutorials.race.results.table import tables_of_cells, tables_of_costs, tables_of_faults
from tutorials.race.running import Wanted, WayHangs, play_cells
from tutorials.race.way import Way
from tutorials.race.ways import WAYS_ON_APACHE

app = typer.Typer(add_completion=False)
_DOCS = Path(__file__).parents[2] / "docs"


@app.command()
def race(
    cell: Annotated[list[str] | None, typer.Option(help="WAY/FAULT, WAY or /FAULT; may be repeated; default: all")] = None,
    orders: Annotated[int, typer.Option(min=1, help="orders in each cell")] = 1000,
    apache: Annotated[
        int, typer.Option(min=0, help="orders in each cell on Apache's broker, in real time; 0 omits these cells")
    ] = 0,
    seed: Annotated[int, typer.Option(help="seed; the same seed gives the same figures")] = 1,
    add: Annotated[Path | None, typer.Option(help="Python file with further ways", exists=True, dir_okay=False)] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="JSON file for the figures; keeps its figures of Apache's broker until new ones exist"),
    ] = None,
    draw: Annotated[Path | None, typer.Option(help="SVG file for the picture; requires all cells")] = None,
    renew_docs: Annotated[bool, typer.Option("--renew-docs", help="write docs/race.json and docs/race.svg")] = False,
    processes: Annotated[
        int | None, typer.Option(min=1, help="number of cells played at the same time; default: number of CPUs")
    ] = None,
) -> None:
    """Race the ways to notify another service under faults, and print how many orders went wrong."""
    console = Console()
    if renew_docs:
        output, draw = _DOCS / "race.json", _DOCS / "race.svg"
    ways, wanted = _entries(cell or [], add, orders, apache)
    if draw is not None and cell:
        raise typer.BadParameter("--draw requires all cells: omit --cell or --draw")
    try:
        figures = _played(console, wanted, seed, add, processes)
    except (BrokerCannotRun, WayHangs) as error:
        console.print(f"the race failed: {error}", style="red", markup=False)
        raise typer.Exit(1) from None
    if cell:
        console.print(*tables_of_cells(figures, console.width))
    else:
        ways, kept_figures = _with_kept(ways, output)
        figures += kept_figures
        for table in (
            *tables_of_faults(ways, list(Fault), figures, console.width),
            *tables_of_costs(ways, figures, console.width),
        ):
            console.print(table)
    if output is not None:
        _write(console, output, Record(orders, seed, figures).written())
    if draw is not None:
        _write(console, draw, picture(ways, list(Fault), figures, orders=orders, seed=seed))


def _write(console: Console, file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    console.print(f"written: {file}", markup=False, highlight=False, soft_wrap=True)


def _entries(cell: Sequence[str], add: Path | None, orders: int, apache: int) -> tuple[Sequence[type[Way]], list[Wanted]]:
    """Returns the approaches and the runs to play, in the order of the table.

    Raises typer.BadParameter for an unknown approach or fault, and if software for Apache's broker is missing.
    """
    in_real_time = {way.name for way in WAYS_ON_APACHE}
    if apache == 0 and (named := in_real_time & {text.partition("/")[0] for text in cell}):
        raise typer.BadParameter(f"{named.pop()} runs in real time: set the number of orders, such as --apache 50")
    try:
        ways = ways_with(add, on_apache=apache > 0)
        found = cells(ways, cell)
    except NoSuchEntry as error:
        raise typer.BadParameter(str(error)) from None
    for way in dict.fromkeys(way for way, _ in found):
        if issubclass(way.broker, ApacheBroker) and (missing := missing_for_apache(way.broker.version)) is not None:
            raise typer.BadParameter(missing)
    return ways, [Wanted(way.name, fault.value, apache if way.name in in_real_time else orders) for way, fault in found]


def _played(console: Console, wanted: Sequence[Wanted], seed: int, add: Path | None, processes: int | None) -> list[Figures]:
    """Plays the wanted runs, shows the progress, and returns the figures in the order of `wanted`.

    Raises BrokerCannotRun or WayHangs.
    """
    columns = TextColumn("cells played"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    figures = []
    with Progress(*columns, console=console, transient=True) as progress:
        playing = progress.add_task("", total=len(wanted))
        lines = ProgressLines("cells played", len(wanted), time.monotonic)
        for one in play_cells(wanted, seed=seed, file=add, processes=processes):
            figures.append(one)
            progress.advance(playing)
            if not console.is_terminal and (line := lines.after(len(figures))):
                console.print(line, highlight=False)
    in_order = {(one.way, one.fault): number for number, one in enumerate(wanted)}
    return sorted(figures, key=lambda one: in_order[one.way, one.fault])


def _with_kept(ways: Sequence[type[Way]], output: Path | None) -> tuple[Sequence[type[Way]], list[Figures]]:
    """Adds the earlier figures of approaches on Apache's broker that were not played now.

    Adds an approach only if the file `output` contains its figures for all faults. Returns all approaches and the added figures.
    """
    figures = []
    for way in WAYS_ON_APACHE:
        earlier = kept(output, way.name)
        if way not in ways and {one.fault for one in earlier} == {fault.value for fault in Fault}:
            ways = [*ways, way]
            figures += earlier
    return ways, figures


if __name__ == "__main__":
    with until_interrupted("Stopped: nothing was written."):
        app()
