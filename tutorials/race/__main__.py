"""The race's command line: `python -m tutorials.race --help`."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tutorials.race.entries import NoSuchEntry, cells, ways_with
from tutorials.race.faults import Fault
from tutorials.race.figures import Figures
from tutorials.race.picture import picture
from tutorials.race.running import play_cells
from tutorials.race.table import table_of_cells, table_of_costs, table_of_faults

app = typer.Typer(add_completion=False)


@app.command()
def race(
    cell: Annotated[list[str] | None, typer.Option(help="WAY/FAULT, WAY or /FAULT; may be repeated. Without it: all")] = None,
    orders: Annotated[int, typer.Option(min=1, help="orders in each cell")] = 1000,
    seed: Annotated[int, typer.Option(help="the same seed gives the same figures")] = 1,
    add: Annotated[Path | None, typer.Option(help="a Python file with further ways", exists=True, dir_okay=False)] = None,
    output: Annotated[Path | None, typer.Option(help="a file for the figures, as JSON")] = None,
    draw: Annotated[Path | None, typer.Option(help="a file for the picture, an SVG; only of all cells")] = None,
    processes: Annotated[int | None, typer.Option(min=1, help="cells side by side; as many as processors")] = None,
) -> None:
    """Races the ways to tell another database, under faults, and prints how many orders went wrong."""
    console = Console()
    try:
        ways = ways_with(add)
        wanted = cells(ways, cell or [])
    except NoSuchEntry as error:
        raise typer.BadParameter(str(error)) from None
    if draw is not None and cell:
        raise typer.BadParameter("a picture shows all cells: leave --cell out, or --draw")
    columns = TextColumn("cells played"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    figures: list[Figures] = []
    with Progress(*columns, console=console, transient=True) as progress:
        playing = progress.add_task("", total=len(wanted))
        for one in play_cells(wanted, orders=orders, seed=seed, file=add, processes=processes):
            figures.append(one)
            progress.advance(playing)
    in_order = {(way.name, fault.value): number for number, (way, fault) in enumerate(wanted)}
    figures.sort(key=lambda one: in_order[one.way, one.fault])
    if cell:
        console.print(table_of_cells(figures))
    else:
        console.print(table_of_faults(ways, list(Fault), figures), table_of_costs(ways, figures))
    if output is not None:
        record = {"orders": orders, "seed": seed, "cells": [dataclasses.asdict(one) for one in figures]}
        output.write_text(json.dumps(record, indent=1) + "\n")
    if draw is not None:
        draw.write_text(picture(ways, list(Fault), figures, orders=orders, seed=seed))


if __name__ == "__main__":
    app()
