"""Runs the attacks on this checkout, and on another one for comparison, and prints one table. It takes two minutes."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.attacks.attacks import AT_THE_BROKER, ELSEWHERE, NOTHING
from benchmarks.attacks.place import placed
from rocketmq_broker.told_to_stop import until_interrupted

HERE: Final = Path(__file__).resolve().parents[2]
SOMEBODY_GAINED: Final = 1


def main(
    before: Annotated[Path | None, typer.Option(help="Another checkout, attacked first for the column `before`.")] = None,
) -> None:
    """Prints the gain of each attack; exits with 1 if an attack on this checkout gained something."""
    columns = {"before": _gained(before.resolve())} if before else {}
    columns["now"] = _gained(HERE)
    table = Table("attack", *columns, title="What attackers gain", show_lines=True)
    for name in columns["now"]:
        table.add_row(name, *(column[name] for column in columns.values()))
    console = Console()
    console.print(table, highlight=False, markup=False)
    raise typer.Exit(SOMEBODY_GAINED if any(not gain.startswith(NOTHING) for gain in columns["now"].values()) else 0)


def _gained(checkout: Path) -> dict[str, str]:
    """Returns each attack's gain, or the reason why it is unknown."""
    with tempfile.TemporaryDirectory(prefix="attacks-") as folder:
        gained = asyncio.run(_gained_at_the_broker(checkout, Path(folder)))
        for attack in ELSEWHERE:
            try:
                gained[attack.__doc__ or ""] = attack(checkout, Path(folder) / attack.__name__)
            except Exception as error:
                gained[attack.__doc__ or ""] = f"{type(error).__name__}: {error}"
    return gained


async def _gained_at_the_broker(checkout: Path, folder: Path) -> dict[str, str]:
    gained = {}
    async with placed(checkout, folder) as place:
        for attack in AT_THE_BROKER:
            try:
                gained[attack.__doc__ or ""] = await attack(place)
            except Exception as error:
                gained[attack.__doc__ or ""] = f"{type(error).__name__}: {error}"
    return gained


if __name__ == "__main__":
    with until_interrupted("Stopped: no table, because not all attacks were made."):
        typer.run(main)
