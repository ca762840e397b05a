"""The command line of the search for planted bugs: `python -m lab.simulation.planted --help`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lab.simulation.plans import plan_of
from lab.simulation.planted.all_planted import ALL_PLANTED, find_planted
from lab.simulation.planted.found import FOUND, found_in
from lab.simulation.planted.hunting import hunt
from lab.simulation.planted.kept import HuntedWorld, KeptHunt, ShrunkBug
from lab.simulation.planted.table import as_markdown
from lab.simulation.planted.writing import write_found
from lab.simulation.search.code_version import code_version
from lab.simulation.search.player import PlayRequest, play_one
from lab.simulation.search.worlds import WorldEnd, Worlds
from lab.simulation.world import play
from rocketmq_broker.stop_signals import until_interrupted
from rocketmq_broker.testing.simulation.plan import Plan

app = typer.Typer(add_completion=False)

_ROOT = Path(__file__).parents[3]
_WORLDS = Worlds(plan_of, play)


@app.command()
def hunt_planted(
    names: Annotated[list[str] | None, typer.Argument(help="bugs to hunt; default: all")] = None,
    first: Annotated[int, typer.Option(min=0, help="the first seed")] = 1,
    worlds: Annotated[int, typer.Option(min=0, help="number of seeds; 0 only prints kept results")] = 150,
    shrinking_tries: Annotated[
        int, typer.Option(min=1, help="maximum number of worlds played to shrink one that found a bug")
    ] = 120,
    results: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False, help="file with the results, from which a hunt continues; default: build/planted/VERSION.jsonl"
        ),
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="write the results to found.py and docs/simulation-planted.md")] = False,
) -> None:
    """Runs simulations with each planted bug until one violates a guarantee, and prints the table of all bugs.

    Exit status: 0 if each bug was found, 1 if not, 2 if a bug name is unknown.
    """
    console, wanted = Console(stderr=True), names or [bug.name for bug in ALL_PLANTED]
    try:
        for name in wanted:
            find_planted(name)
    except KeyError as error:
        console.print(error.args[0], style="red", markup=False)
        raise typer.Exit(2) from None
    kept = KeptHunt(results or Path("build", "planted", f"{code_version(_ROOT)}.jsonl"))
    try:
        if worlds:
            hunt(wanted, range(first, first + worlds), _end, kept, tries=shrinking_tries, watcher=_HuntPrinter(console))
    except KeyboardInterrupt:
        console.print("Stopped. Results are kept. Run the same command to continue.")
    found = {**FOUND, **found_in(kept, wanted)}
    if write:
        write_found(_ROOT, found)
    typer.echo(as_markdown(ALL_PLANTED, found=found), nl=False)
    raise typer.Exit(1 if any(kept.found(name) is None for name in wanted) else 0)


class _HuntPrinter:
    """Prints the progress of a search."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def has_played(self, seed: int, left: Sequence[str]) -> None:
        self._console.print(f"seed {seed}: {len(left)} bugs left", highlight=False)

    def has_found(self, world: HuntedWorld) -> None:
        self._console.print(f"{world.bug}: found by seed {world.seed}: {world.promise}", markup=False, highlight=False)

    def has_shrunk(self, bug: ShrunkBug) -> None:
        line = f"{bug.bug}: seed {bug.seed} shrunk to {bug.events} events, in {bug.worlds} worlds"
        self._console.print(line, markup=False, highlight=False)


def _end(plan: Plan | int) -> WorldEnd:
    return play_one(_WORLDS, PlayRequest(plan))


if __name__ == "__main__":
    with until_interrupted():
        app()
