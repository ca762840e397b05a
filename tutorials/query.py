"""Prints the result of a query on the SQLite database of a service: `python -m tutorials.query FILE "SELECT ..."`."""

import sqlite3
from pathlib import Path
from typing import Annotated

import typer
from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from rocketmq_broker.stop_signals import until_interrupted


def query(file: Annotated[Path, typer.Argument(exists=True, dir_okay=False)], statement: str) -> None:
    """Runs a SELECT statement. Opens the database read-only."""
    connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)
    try:
        found = connection.execute(statement)
        table = Table(*[str(column[0]) for column in found.description or ()], box=MARKDOWN)
        for row in found:
            table.add_row(*[str(value) for value in row])
    except sqlite3.Error as error:
        raise SystemExit(f"{file}: {error}") from None
    finally:
        connection.close()
    Console(width=120).print(table)


if __name__ == "__main__":
    with until_interrupted():
        typer.run(query)
