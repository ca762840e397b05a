"""The command line of the comparison: `python -m tutorials.race --help`."""

if __name__ == "__main__":
    from rocketmq_broker.stop_signals import exit_at_once_on_ctrl_c

    exit_at_once_on_ctrl_c()

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
from tutorials.race.entries import NoSuchEntry, cells, find_way, ways_with
from tutorials.race.faults import Fault
from tutorials.race.results.figures import Figures
from tutorials.race.results.picture import picture
from tutorials.race.results.progress import ProgressLines
from tutorials.race.results.record import Record, earlier_record
from tutorials.race.results.table import tables_of_cells, tables_of_costs, tables_of_faults
from tutorials.race.running import Wanted, WayHangs, play_cells
from tutorials.race.way import Way
from tutorials.race.ways import WAYS, WAYS_ON_APACHE

app = typer.Typer(add_completion=False)
_DOCS = Path(__file__).parents[2] / "docs"


@app.command()
def race(
    cell: Annotated[list[str] | None, typer.Option(help="WAY/FAULT, WAY or /FAULT; may be repeated; default: all")] = None,
    way: Annotated[
        list[str] | None,
        typer.Option(help="play only this way, and keep the figures of all others in the JSON file; may be repeated"),
    ] = None,
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
    if cell and (way or draw is not None):
        raise typer.BadParameter("--cell plays single cells: omit it, or omit --way and --draw")
    ways, wanted = _entries(cell or [], way or [], add, orders, apache)
    if way:
        _check_earlier(output, way, orders, seed)
    try:
        figures = _played(console, wanted, seed, add, processes)
    except (BrokerCannotRun, WayHangs) as error:
        console.print(f"the race failed: {error}", style="red", markup=False, emoji=False)
        raise typer.Exit(1) from None
    kept: list[Figures] = []
    if cell:
        console.print(*tables_of_cells(figures, console.width))
    else:
        ways, kept = _with_kept(ways, output)
        figures = _in_order(ways, [*figures, *kept])
        for table in (
            *tables_of_faults(ways, list(Fault), figures, console.width),
            *tables_of_costs(ways, figures, console.width),
        ):
            console.print(table)
    if output is not None:
        _write(console, output, Record(orders, seed, figures, list(dict.fromkeys(one.way for one in kept))).written())
    if draw is not None:
        _write(console, draw, picture(ways, list(Fault), figures, orders=orders, seed=seed))


def _write(console: Console, file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    console.print(f"written: {file}", markup=False, emoji=False, highlight=False, soft_wrap=True)


def _entries(
    cell: Sequence[str], way: Sequence[str], add: Path | None, orders: int, apache: int
) -> tuple[Sequence[type[Way]], list[Wanted]]:
    """Returns the approaches and the runs to play, in the order of the table. An empty `way` or `cell` selects all.

    Raises typer.BadParameter for an unknown approach or fault, and if software for Apache's broker is missing.
    """
    in_real_time = {way.name for way in WAYS_ON_APACHE}
    if apache == 0 and (named := in_real_time & {text.partition("/")[0] for text in (*cell, *way)}):
        raise typer.BadParameter(f"{named.pop()} runs in real time: set the number of orders, such as --apache 50")
    try:
        ways = ways_with(add, on_apache=apache > 0)
        ways = tuple(find_way(ways, name) for name in dict.fromkeys(way)) or ways
        found = cells(ways, cell)
    except NoSuchEntry as error:
        raise typer.BadParameter(str(error)) from None
    for one in dict.fromkeys(one for one, _ in found):
        if issubclass(one.broker, ApacheBroker) and (missing := missing_for_apache(one.broker.version)) is not None:
            raise typer.BadParameter(missing)
    return ways, [Wanted(one.name, fault.value, apache if one.name in in_real_time else orders) for one, fault in found]


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


def _check_earlier(output: Path | None, way: Sequence[str], orders: int, seed: int) -> None:
    """Raises typer.BadParameter if the file `output` cannot supply the figures of the approaches that are not in `way`."""
    earlier = earlier_record(output)
    if earlier is None:
        raise typer.BadParameter("--way needs a JSON file with the figures of the other ways: --output or --renew-docs")
    if (earlier.orders, earlier.seed) != (orders, seed):
        raise typer.BadParameter(
            f"{output} has {earlier.orders} orders in each cell and seed {earlier.seed}: use the same --orders and --seed"
        )
    if unknown := [one.name for one in WAYS if one.name not in way and not _complete(earlier, one)]:
        raise typer.BadParameter(f"{output} has no complete figures of {', '.join(unknown)}: add these ways with --way")


def _with_kept(ways: Sequence[type[Way]], output: Path | None) -> tuple[list[type[Way]], list[Figures]]:
    """Adds the figures of an earlier run for approaches that the current run does not contain.

    Adds an approach only if the file `output` contains its figures for all faults. Returns all approaches and the added
    figures.
    """
    earlier = earlier_record(output)
    known = (*WAYS, *WAYS_ON_APACHE)
    kept = [way for way in known if earlier is not None and way not in ways and _complete(earlier, way)]
    figures = [one for way in kept if earlier is not None for one in earlier.figures if one.way == way.name]
    return [*(way for way in known if way in ways or way in kept), *(way for way in ways if way not in known)], figures


def _complete(record: Record, way: type[Way]) -> bool:
    """Returns True if the record contains the figures of the approach for all faults."""
    return {one.fault for one in record.figures if one.way == way.name} == {fault.value for fault in Fault}


def _in_order(ways: Sequence[type[Way]], figures: Sequence[Figures]) -> list[Figures]:
    """Returns the figures in the order of the approaches."""
    return [one for way in ways for one in figures if one.way == way.name]


if __name__ == "__main__":
    with until_interrupted("Stopped: nothing was written."):
        app()
