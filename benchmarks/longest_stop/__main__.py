"""Measures the rows one after the other, and prints one table."""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
import resource
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.longest_stop import by_code, rows
from benchmarks.longest_stop.stage import Measured, staged
from rocketmq_broker.told_to_stop import until_interrupted

HERE: Final = Path(__file__).resolve().parents[2]
MOST_STOP_S: Final = 0.05
TOO_LONG: Final = 1
CODES: Final = "codes"


def main(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Rows by module, request codes by name, `codes` for all codes; all without one."),
    ] = None,
    before: Annotated[Path | None, typer.Option(help="Another checkout, measured in turn for the column `before`.")] = None,
) -> None:
    """Prints the longest stop of each row; exits with 1 if one takes 50 ms of CPU time or more, or cannot be measured."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    console = Console()
    table = Table("row", *(["before", "MiB"] if before else []), "longest stop", "CPU of it", "MiB more", title="Event loop")
    is_too_long = False
    found = rows_by_name()
    for name in names or sorted(found):
        if name.isupper() or name == CODES:
            continue
        row = importlib.import_module(found[name])
        old = _measure(row, before.resolve()) if before else None
        new = _measure(row, HERE)
        is_too_long |= not isinstance(new, Measured) or new.cpu_s >= MOST_STOP_S
        cells = [*([_stop(old), _memory(old)] if before else []), _stop(new), _cpu(new), _memory(new)]
        table.add_row(row.WHAT, *cells)
        console.print(f"{row.WHAT}: {', '.join(cells)}", highlight=False)
    codes = [name for name in names or [CODES] if name.isupper() or name == CODES]
    if codes:
        only = [name for name in codes if name != CODES]
        is_too_long |= asyncio.run(_tell_codes(console, table, only, is_comparing=before is not None))
    console.print(table)
    raise typer.Exit(TOO_LONG if is_too_long else 0)


def rows_by_name() -> dict[str, str]:
    """Returns the rows of all rooms: the names for the command line, and the modules."""
    modules = pkgutil.walk_packages(rows.__path__, f"{rows.__name__}.")
    return {module.name.rpartition(".")[2]: module.name for module in modules if not module.ispkg}


async def _tell_codes(console: Console, table: Table, only: list[str], *, is_comparing: bool) -> bool:
    """Adds a row for each request code. Returns whether one is too long."""
    is_too_long = False
    with tempfile.TemporaryDirectory(prefix="longest-stop-") as folder:
        store = Path(folder) / "store"
        by_code.fill(store)
        async with staged(HERE, store, by_code.SETTINGS) as stage:
            async for code, cpu_s, answer in by_code.cpu_by_code(stage, only):
                name = by_code.name_of(code)
                is_too_long |= cpu_s >= MOST_STOP_S
                table.add_row(name, *(["", ""] if is_comparing else []), "", f"{cpu_s * 1000:,.0f} ms", "")
                console.print(f"{name}: {cpu_s * 1000:,.0f} ms ({answer})", highlight=False)
    return is_too_long


def _measure(row: ModuleType, checkout: Path) -> Measured | str:
    """Returns a row's measurement, or the reason why there is none."""
    with tempfile.TemporaryDirectory(prefix="longest-stop-") as folder:
        try:
            return asyncio.run(_play(row, checkout, Path(folder) / "store"))
        except Exception as error:
            log = (Path(folder) / "store.log").read_text(errors="replace").splitlines()
            return f"{type(error).__name__}: {error} {' '.join(log[-1:])}"


async def _play(row: ModuleType, checkout: Path, folder: Path) -> Measured:
    async with staged(checkout, folder, getattr(row, "SETTINGS", {})) as stage:
        await row.run(stage)
        return await stage.end()


def _stop(measured: Measured | str | None) -> str:
    return f"{measured.stop_s * 1000:,.0f} ms" if isinstance(measured, Measured) else str(measured)


def _cpu(measured: Measured | str) -> str:
    return f"{measured.cpu_s * 1000:,.0f} ms" if isinstance(measured, Measured) else ""


def _memory(measured: Measured | str | None) -> str:
    return f"{measured.grown_mib:,.0f}" if isinstance(measured, Measured) else ""


if __name__ == "__main__":
    with until_interrupted("Stopped: nothing was measured to the end."):
        typer.run(main)
