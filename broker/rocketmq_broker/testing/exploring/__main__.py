"""The command line of the explorer: `python -m rocketmq_broker.testing.exploring --help`."""

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import rocketmq_broker
from rocketmq_broker.stop_signals import until_interrupted
from rocketmq_broker.testing.exploring.errors import UnusableTest
from rocketmq_broker.testing.exploring.explore import worlds_of
from rocketmq_broker.testing.exploring.search.code_version import code_version
from rocketmq_broker.testing.exploring.search.command import SearchCommand
from rocketmq_broker.testing.simulation.plan import UnreadablePlan, read_plan

_EXPLORER = Path(rocketmq_broker.__file__).parent

app = typer.Typer(add_completion=False)


@app.command()
def explore_test(
    test: Annotated[str, typer.Argument(metavar="MODULE:TEST", help="a test with @explore, such as tests.test_shop:test_credit")],
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
    code: Annotated[
        list[Path] | None,
        typer.Option(help="folder with tested code, may be repeated; a change discards results; default: current folder"),
    ] = None,
) -> None:
    """Runs a test with @explore in simulated worlds, each from a seed, on all CPUs.

    Exit status: 0 if the test passed in each world, 1 if it failed in one or a kind of fault never occurred in 1,000 worlds,
    2 for an unusable test or plan, 130 after Ctrl-C.
    """
    console = Console()
    module, _, name = test.partition(":")
    try:
        command = SearchCommand(
            worlds_of(getattr(import_module(module), name)), console, output, code_version([*(code or [Path()]), _EXPLORER]),
            f"python -m rocketmq_broker.testing.exploring {test}", processes=processes, shrinking_tries=shrinking_tries,
        )  # fmt: skip
        if seed is not None:
            status = command.play_seed(seed)
        elif plan is not None:
            status = command.play_plan(read_plan(plan.read_bytes()), plan, picture)
        elif check_digests is not None:
            status = command.check_digests(range(first, first + check_digests))
        else:
            status = command.search(range(first, first + seeds), goes_on=keep_going)
    except (UnreadablePlan, UnusableTest) as error:
        console.print(f"{plan or test}: {error}", style="red", markup=False)
        status = 2
    except KeyboardInterrupt:
        console.print("Stopped. Run the same command to continue.")
        status = 130
    raise typer.Exit(status)


if __name__ == "__main__":
    with until_interrupted():
        app()
