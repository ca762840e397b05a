"""The commands `breaks list | show | assign | close`."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final, TypeVar

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipelines.breaks.break_table import Break, BreakTable
from pipelines.errors import BreaksUnusable
from pipelines.judging.classes import Finding
from pipelines.telling.report import age, amount, screen
from rocketmq_broker.message.text.printable import printable, visible_name

DEFAULT_FILE: Final = Path("data/breaks.db")
UNUSABLE: Final = 2

T = TypeVar("T")

commands = typer.Typer(help="What reconciliations found, until it is closed.", no_args_is_help=True)

File = Annotated[Path, typer.Option("--breaks", help="the file that reconcile --breaks wrote")]
Number = Annotated[int, typer.Argument(help="the break's number")]


@commands.command("list")
def list_command(
    breaks: File = DEFAULT_FILE,
    closed: Annotated[bool, typer.Option("--closed", help="closed ones, too")] = False,
    owner: Annotated[str | None, typer.Option(help="those of this owner only")] = None,
    finding: Annotated[Finding | None, typer.Option(help="those of this class only")] = None,
) -> None:
    """Breaks with their age, the dearest first."""
    found = _tried(lambda: _existing(breaks).list(with_closed=closed, owner=owner, finding=finding and finding.value))
    table = Table(title=f"{len(found)} breaks")
    for name in ("number", "about", "finding", "cause", "at stake", "age", "owner", "closed"):
        table.add_column(name, justify="right" if name in ("number", "at stake", "age") else "left")
    for one in found:
        table.add_row(*map(Text, _cells(one, _now_ms())))
    screen().print(table)


@commands.command("show")
def show_command(number: Number, breaks: File = DEFAULT_FILE) -> None:
    """All that is kept of one break."""
    _show(_tried(lambda: _existing(breaks).find(number)))


@commands.command("assign")
def assign_command(
    number: Number,
    owner: Annotated[str, typer.Argument(help='who takes care of it; "" for nobody')],
    note: Annotated[str | None, typer.Option(help="what is known about it")] = None,
    breaks: File = DEFAULT_FILE,
) -> None:
    """Give a break to somebody."""
    _show(_tried(lambda: _existing(breaks).assign(number, owner, note)))


@commands.command("close")
def close_command(
    number: Number, reason: Annotated[str, typer.Option(help="why nothing is to be done")], breaks: File = DEFAULT_FILE
) -> None:
    """Close a break by hand: it stays closed until it is found with another class, cause or amount."""
    _show(_tried(lambda: _existing(breaks).close(number, reason, _now_ms())))


def _existing(path: Path) -> BreakTable:
    if not path.is_file():
        raise BreaksUnusable(f"breaks {path}: there is no such file; reconcile --breaks {path} makes it")
    return BreakTable(path)


def _cells(one: Break, now_ms: int) -> list[str]:
    until_ms = now_ms if one.closed_at_ms is None else one.closed_at_ms
    told = [
        str(one.number), visible_name(one.subject), one.finding.replace("_", " "), (one.cause or "").replace("_", " "),
        amount(one.at_stake_cents, one.currency or ""), age(until_ms - one.first_seen_ms), one.owner, one.closed_because or "",
    ]  # fmt: skip
    return [printable(text) for text in told]


def _show(one: Break) -> None:
    names = ("number", "about", "finding", "cause", "at stake", "age", "owner", "closed")
    printed = screen()
    for name, value in [*zip(names, _cells(one, _now_ms()), strict=True), ("note", printable(one.note))]:
        printed.print(f"{name}: {value}", markup=False, highlight=False, soft_wrap=True)


def _tried(action: Callable[[], T]) -> T:
    try:
        return action()
    except BreaksUnusable as error:
        Console(stderr=True).print(printable(str(error)), style="bold red", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(UNUSABLE) from None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
