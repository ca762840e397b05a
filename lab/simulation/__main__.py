"""The command line of the simulations: `python -m lab.simulation --help`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lab.simulation.plans import plan_of
from lab.simulation.plans.fitting import shape_for
from lab.simulation.search.code_version import code_version
from lab.simulation.search.command import SimulationCommand
from lab.simulation.search.worlds import Worlds
from lab.simulation.world import play
from rocketmq_broker.stop_signals import until_interrupted
from rocketmq_broker.testing.simulation.plan import UnreadablePlan, read_plan

app = typer.Typer(add_completion=False)

_ROOT = Path(__file__).parents[2]


@app.command()
def simulate(
    seeds: Annotated[int, typer.Option(min=1, help="number of seeds; skips seeds that were played before")] = 300,
    first: Annotated[int, typer.Option(min=0, help="the first seed")] = 1,
    seed: Annotated[int | None, typer.Option(min=0, help="play only this world, and write build/world-SEED.html")] = None,
    plan: Annotated[Path | None, typer.Option(help="play the plan in this file", exists=True, dir_okay=False)] = None,
    picture: Annotated[Path | None, typer.Option(help="draw the world of --plan into this SVG file", dir_okay=False)] = None,
    check_digests: Annotated[
        int | None, typer.Option(min=1, help="hash this many seeds twice in new interpreters; the digests must be equal")
    ] = None,
    keep_going: Annotated[bool, typer.Option("--keep-going", help="continue after a failed world")] = False,
    processes: Annotated[
        int | None, typer.Option(min=1, help="number of worlds played at the same time; default: number of CPUs")
    ] = None,
    shrinking_tries: Annotated[int, typer.Option(min=1, help="maximum number of worlds played to shrink a failed one")] = 600,
    output: Annotated[Path, typer.Option(help="folder for results", file_okay=False)] = Path("build"),
) -> None:
    """Runs simulations of broker, services, customers and faults, each from a seed, and checks the system's guarantees.

    Exit status: 0 if every guarantee held, 1 if one was violated or a kind of fault never occurred in 1,000 simulations, 130
    after Ctrl-C.
    """
    console = Console()
    command = SimulationCommand(
        Worlds(plan_of, play), console, output, code_version(_ROOT), processes=processes, shrinking_tries=shrinking_tries
    )
    try:
        if seed is not None:
            code = command.play_seed(seed)
        elif plan is not None:
            read = read_plan(plan.read_bytes())
            shape_for(read)
            code = command.play_plan(read, plan, picture)
        elif check_digests is not None:
            code = command.check_digests(range(first, first + check_digests))
        else:
            code = command.search(range(first, first + seeds), goes_on=keep_going)
    except UnreadablePlan as error:
        console.print(f"{plan}: {error}", style="red", markup=False)
        code = 2
    except KeyboardInterrupt:
        console.print("Stopped. Run the same command to continue.")
        code = 130
    raise typer.Exit(code)


if __name__ == "__main__":
    with until_interrupted():
        app()
