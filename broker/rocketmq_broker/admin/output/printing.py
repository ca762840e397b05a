"""Prints tables, text and JSON. Rich is imported only for tables, because a console in a web page runs without it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from rocketmq_broker.message.text.printable import printable

if TYPE_CHECKING:
    from rich.console import Console

S = TypeVar("S", bound=msgspec.Struct)

WIDTH_OF_NO_TERMINAL: Final = 250
"""The width of tables that are written to a file or a pipe, in characters."""


def echo(text: str) -> None:
    """Prints a line to standard output, with unprintable characters escaped, and flushes the output. No other module prints."""
    print(printable(text), flush=True)


def print_error(text: str) -> None:
    """Prints a line to standard error."""
    print(printable(text), file=sys.stderr)


def print_json(rows: Iterable[tuple[str, msgspec.Struct]]) -> None:
    """Prints a JSON array with an object for each row. The field `broker` is the address of the row's broker."""
    print_objects([_with_broker(address, row) for address, row in rows])


def print_objects(objects: Sequence[object]) -> None:
    """Prints a JSON array of objects that msgspec can encode."""
    formatted = msgspec.json.format(msgspec.json.encode(objects), indent=2).decode()
    print("\n".join(_json_escaped(line) for line in formatted.split("\n")))


def print_json_line(address: str, row: msgspec.Struct) -> None:
    """Prints one JSON object on one line and flushes it."""
    print(_json_escaped(msgspec.json.encode(_with_broker(address, row)).decode()), flush=True)


def print_listing(
    rows: Sequence[tuple[str, S]], print_rows: Callable[[Sequence[tuple[str, S]]], None], *, as_json: bool, nothing: str
) -> None:
    """Prints the rows as JSON or with `print_rows`. Prints the text `nothing` if there are no rows."""
    if as_json:
        print_json(rows)
    elif rows:
        print_rows(rows)
    else:
        echo(nothing)


def print_table(columns: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Prints one row per line. Adds a column for the broker's address if there are several brokers."""
    from rich.table import Table
    from rich.text import Text

    has_broker_column = len({address for address, _ in rows}) > 1
    table = Table(box=None, pad_edge=False)
    for column in (*(["broker"] if has_broker_column else []), *columns):
        table.add_column(column, overflow="fold")
    for address, cells in rows:
        table.add_row(*(Text(printable(cell)) for cell in (*([address] if has_broker_column else []), *cells)))
    _console().print(table)


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Prints names with their values, one per line. Omits empty values."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    for name, value in facts:
        if value:
            grid.add_row(Text(printable(name), style="dim"), Text("\n".join(map(printable, value.split("\n")))))
    grid.add_row()
    _console().print(grid)


def _with_broker(address: str, row: msgspec.Struct) -> dict[str, object]:
    return {"broker": address, **msgspec.to_builtins(row)}


def _json_escaped(line: str) -> str:
    """Escapes unprintable characters in a line of JSON, where they occur only within strings."""
    if line.isprintable():
        return line
    return "".join(character if character.isprintable() else json.dumps(character)[1:-1] for character in line)


def _console() -> Console:
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=WIDTH_OF_NO_TERMINAL)
