"""The command line of the explorer: `python -m rocketmq_broker.testing.exploring --help`."""

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

import rocketmq_broker
from rocketmq_broker.message.text.printable import printable
from rocketmq_broker.stop_signals import until_interrupted
from rocketmq_broker.testing.exploring.errors import UnusableTest
from rocketmq_broker.testing.exploring.explore import worlds_of
from rocketmq_broker.testing.exploring.search.code_version import code_version
from rocketmq_broker.testing.exploring.search.command import SearchCommand
from rocketmq_broker.testing.exploring.search.player import described_error
from rocketmq_broker.testing.exploring.search.worlds import Worlds
from rocketmq_broker.testing.simulation.plan import UnreadablePlan, read_plan

_EXPLORER = Path(rocketmq_broker.__file__).parent

app = typer.Typer(add_completion=False)


@app.command()
def explore_test(
    test: Annotated[str, typer.Argument(metavar="MODULE:TEST", help="a test with @explore, such as tests.test_shop:test_credit")],
    seeds: Annotated[int, typer.Option(min=1, help="number of seeds; skips seeds that were played before")] = 300,
    first: Annotated[int, typer.Option(min=0, help="the first seed")] = 1,
    seed: Annotated[int | None, typer.Option(min=0, help="play only this world, and write build/TEST-SEED.html")] = None,
    plan: Annotated[Path | None, typer.Option(help="play the plan in this file", exists=True, dir_okay=False)] = None,
    picture: Annotated[Path | None, typer.Option(help="draw the world of --seed or --plan as SVG", dir_okay=False)] = None,
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
        typer.Option(
            help="folder with tested code, may be repeated; a change discards results; default: current folder", exists=True
        ),
    ] = None,
) -> None:
    """Runs a test with @explore in simulated worlds, each from a seed, on all CPUs.

    Exit status: 0 if the test passed in each world, 1 if it failed in one or a kind of fault never occurred in 1,000 worlds,
    2 for an unusable test, plan or folder, 130 after Ctrl-C.
    """
    if sum(one is not None for one in (seed, plan, check_digests)) > 1:
        raise typer.BadParameter("use only one of --seed, --plan and --check-digests")
    if picture is not None and seed is None and plan is None:
        raise typer.BadParameter("--picture needs --seed or --plan")
    console = Console()
    try:
        command = SearchCommand(
            _worlds_named(test), console, output, code_version(test, [*(code or [Path()]), _EXPLORER]),
            f"python -m rocketmq_broker.testing.exploring {test}", processes=processes, shrinking_tries=shrinking_tries,
        )  # fmt: skip
        if seed is not None:
            status = command.play_seed(seed, picture)
        elif plan is not None:
            status = command.play_plan(read_plan(plan.read_bytes()), plan, picture)
        elif check_digests is not None:
            status = command.check_digests(range(first, first + check_digests))
        else:
            status = command.search(range(first, first + seeds), goes_on=keep_going)
    except (UnreadablePlan, UnusableTest) as error:
        _complain(console, f"{plan or test}: {error}")
        status = 2
    except OSError as error:
        _complain(console, f"{error.filename or output}: {error.strerror or error}")
        status = 2
    except KeyboardInterrupt:
        console.print("Stopped. Run the same command to continue.")
        status = 130
    raise typer.Exit(status)


def _complain(console: Console, text: str) -> None:
    console.print(Text("\n".join(map(printable, text.split("\n"))), style="red"), soft_wrap=True)


def _worlds_named(test: str) -> Worlds:
    """Returns the worlds of the test MODULE:TEST. Raises UnusableTest if there is no such module or test."""
    module, _, name = test.partition(":")
    if not module or not name or module.startswith("."):
        raise UnusableTest("not a test: write MODULE:TEST, such as tests.test_shop:test_credit")
    try:
        imported = import_module(module)
    except UnusableTest:
        raise
    except (Exception, SystemExit) as error:
        in_module = error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)
        raise UnusableTest(f"the module {module} cannot be imported: {described_error(in_module)}") from None
    if not hasattr(imported, name):
        raise UnusableTest(f"the module {module} has no {name}")
    return worlds_of(getattr(imported, name))


if __name__ == "__main__":
    with until_interrupted():
        app()
