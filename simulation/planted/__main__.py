"""The command line of the hunt for planted bugs: `python -m simulation.planted --help`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from rocketmq_broker.told_to_stop import until_interrupted
from simulation.plans import plan_of
from simulation.planted.all_planted import ALL_PLANTED, find_planted
from simulation.planted.found import FOUND, FoundBug
from simulation.planted.hunting import hunt
from simulation.planted.table import as_markdown
from simulation.planted.writing import write_found
from simulation.world import play

app = typer.Typer(add_completion=False)

_ROOT = Path(__file__).parents[2]


@app.command()
def hunt_planted(
    names: Annotated[list[str] | None, typer.Argument(help="the bugs to hunt; all of them if none is named")] = None,
    first: Annotated[int, typer.Option(min=0, help="the first seed")] = 1,
    worlds: Annotated[int, typer.Option(min=1, help="how many seeds")] = 150,
    write: Annotated[bool, typer.Option("--write", help="puts the results into found.py and docs/simulation-planted.md")] = False,
) -> None:
    """Plays world after world with each planted bug until one breaks a promise, and prints the table of all bugs.

    Exit status: 0 if each bug was found, 1 if not, 2 for a name that no bug has.
    """
    told, wanted = Console(stderr=True), names or [bug.name for bug in ALL_PLANTED]
    try:
        for name in wanted:
            find_planted(name)
    except KeyError as error:
        told.print(error.args[0], style="red", markup=False)
        raise typer.Exit(2) from None
    found: dict[str, FoundBug] = {}
    played = 0

    def count(number: int, left: list[str]) -> None:
        nonlocal played
        played = number
        told.print(f"{number} worlds, {len(left)} bugs left", highlight=False)

    try:
        for bug in hunt(wanted, range(first, first + worlds), _first_broken, count):
            found[bug.name] = FoundBug(bug.worlds, bug.worlds, bug.promise)
            told.print(f"{bug.name}: world {bug.worlds}, seed {bug.seed}: {bug.promise}", markup=False, highlight=False)
    except KeyboardInterrupt:
        told.print("Stopped. What was found so far counts.")
    missed = {name: FoundBug(played, None, _why_missed(name)) for name in wanted if name not in found}
    results: Mapping[str, FoundBug] = {**FOUND, **found, **missed}
    if write:
        write_found(_ROOT, results)
    typer.echo(as_markdown(ALL_PLANTED, found=results), nl=False)
    raise typer.Exit(1 if missed else 0)


def _why_missed(name: str) -> str:
    """Returns the remark of an earlier hunt that missed the bug as well: somebody may have written it by hand."""
    earlier = FOUND.get(name)
    return earlier.remark if earlier is not None and earlier.seeds is None else "more worlds are needed"


def _first_broken(seed: int) -> str | None:
    broken = play(plan_of(seed)).violations
    return str(broken[0].promise) if broken else None


if __name__ == "__main__":
    with until_interrupted():
        app()
