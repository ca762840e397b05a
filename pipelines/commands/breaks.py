"""The commands `breaks list | show | assign | close`."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final, TypeVar

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipelines.breaks.break_table import Break, BreakTable
from pipelines.commands.running import now_ms
from pipelines.errors import BreaksUnusable
from pipelines.judging.classes import Finding
from pipelines.reporting.report import age, amount, screen
from rocketmq_broker.message.text.printable import printable, visible_name

DEFAULT_FILE: Final = Path("data/breaks.db")
UNUSABLE: Final = 2
_COLUMNS: Final = ("number", "about", "finding", "cause", "at stake", "age", "owner", "closed")

T = TypeVar("T")

commands = typer.Typer(help="Manage the findings of reconciliations until they are closed.", no_args_is_help=True)

File = Annotated[Path, typer.Option("--breaks", help="the file of reconcile --breaks")]
Number = Annotated[int, typer.Argument(help="the break's number")]


@commands.command("list")
def list_command(
    breaks: File = DEFAULT_FILE,
    closed: Annotated[bool, typer.Option("--closed", help="include closed breaks")] = False,
    owner: Annotated[str | None, typer.Option(help="only breaks of this owner")] = None,
    finding: Annotated[Finding | None, typer.Option(help="only breaks of this class")] = None,
) -> None:
    """List breaks with their age, by money at stake."""
    found = _tried(lambda: _existing(breaks).list(with_closed=closed, owner=owner, finding=finding and finding.value))
    table = Table(title=f"{len(found)} breaks")
    for name in _COLUMNS:
        table.add_column(name, justify="right" if name in ("number", "at stake", "age") else "left")
    for one in found:
        table.add_row(*map(Text, _cells(one)))
    screen().print(table)


@commands.command("show")
def show_command(number: Number, breaks: File = DEFAULT_FILE) -> None:
    """Show a break in detail."""
    _show(_tried(lambda: _existing(breaks).find(number)))


@commands.command("assign")
def assign_command(
    number: Number,
    owner: Annotated[str, typer.Argument(help='the owner; "" for none')],
    note: Annotated[str | None, typer.Option(help="a note")] = None,
    breaks: File = DEFAULT_FILE,
) -> None:
    """Assign a break to an owner."""
    _show(_tried(lambda: _existing(breaks).assign(number, owner, note)))


@commands.command("close")
def close_command(number: Number, reason: Annotated[str, typer.Option(help="the reason")], breaks: File = DEFAULT_FILE) -> None:
    """Close a break manually. It stays closed until it is found with another class, cause or amount."""
    _show(_tried(lambda: _existing(breaks).close(number, reason, now_ms())))


def _existing(path: Path) -> BreakTable:
    if not path.is_file():
        raise BreaksUnusable(f"breaks {path}: no such file; run reconcile --breaks {path} to create it")
    return BreakTable(path)


def _cells(one: Break) -> list[str]:
    until_ms = now_ms() if one.closed_at_ms is None else one.closed_at_ms
    texts = [
        str(one.number), visible_name(one.subject), one.finding.replace("_", " "), (one.cause or "").replace("_", " "),
        amount(one.at_stake_cents, one.currency or ""), age(until_ms - one.first_seen_ms), one.owner, one.closed_because or "",
    ]  # fmt: skip
    return [printable(text) for text in texts]


def _show(one: Break) -> None:
    printed = screen()
    for name, value in [*zip(_COLUMNS, _cells(one), strict=True), ("note", printable(one.note))]:
        printed.print(f"{name}: {value}", markup=False, emoji=False, highlight=False, soft_wrap=True)


def _tried(action: Callable[[], T]) -> T:
    try:
        return action()
    except BreaksUnusable as error:
        Console(stderr=True).print(Text(printable(str(error)), style="bold red"), soft_wrap=True)
        raise typer.Exit(UNUSABLE) from None
