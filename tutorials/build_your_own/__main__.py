"""The tester's command line: `python -m tutorials.build_your_own test --stage 1 -- COMMAND ...`."""

import shlex
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Final

import typer

from rocketmq_broker.stop_signals import until_interrupted
from tutorials.build_your_own.curriculum import STAGES, Stage
from tutorials.build_your_own.tester.failed import Interrupted
from tutorials.build_your_own.tester.printing import Printer
from tutorials.build_your_own.tester.run import Order, run_stages
from tutorials.build_your_own.tester.verdict import Verdict

FAILED: Final = 1
BAD_USAGE: Final = 2
INTERRUPTED: Final = 130

application = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@application.command("list")
def list_stages() -> None:
    """Lists the stages with the paths of their texts."""
    for stage in STAGES:
        print(f"{stage.number:>2}  {stage.title:<22}{stage.text.relative_to(Path(__file__).parents[2])}")


@application.command("test")
def run_test(
    command: Annotated[list[str], typer.Argument(help="Command that starts your broker, after --. The tester adds -c FILE.")],
    stage: Annotated[
        list[int] | None, typer.Option("--stage", min=1, max=len(STAGES), help="Stage to test; may be repeated.")
    ] = None,
    until: Annotated[int | None, typer.Option("--until", min=1, max=len(STAGES), help="Test all stages up to this one.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Test all twelve stages.")] = False,
    patience: Annotated[float, typer.Option(min=0.1, help="Seconds to wait for an immediate answer.")] = 5.0,
    side_by_side: Annotated[int, typer.Option(min=1, help="Number of stages that run at the same time.")] = 4,
    keep: Annotated[Path | None, typer.Option(help="Keep stores, settings and logs in this new folder.")] = None,
    show_bytes: Annotated[bool, typer.Option("--bytes", help="Show the bytes of every event.")] = False,
    show_timeline: Annotated[bool, typer.Option("--timeline", help="Also show the timeline of stages that pass.")] = False,
) -> None:
    """Tests your broker: starts it, sends requests, kills it, reads its files. Exits with 0 if all chosen stages pass, else 1."""
    stages = _chosen(stage, until, every=every)
    printer = Printer(shows_bytes=show_bytes)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    verdicts: list[Verdict] = []
    with ExitStack() as stack:
        home = _new_folder(keep) if keep else Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="build-your-own-")))
        try:
            for verdict in run_stages(Order(command, home, patience, side_by_side), stages):
                is_second = any(not before.is_passed for before in verdicts)
                printer.verdict(verdict, is_short=is_second)
                if show_timeline and verdict.is_passed:
                    printer.timeline(verdict)
                verdicts.append(verdict)
        except (KeyboardInterrupt, Interrupted):
            print("\nStopped. All processes of your broker have ended.", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
    printer.summary(verdicts, shlex.join(command))
    if not all(verdict.is_passed for verdict in verdicts):
        raise typer.Exit(FAILED)


def _chosen(numbers: list[int] | None, until: int | None, *, every: bool) -> list[Stage]:
    if sum((bool(numbers), until is not None, every)) != 1:
        print("Choose the stages to test: --stage N, --until N, or --all.", file=sys.stderr)
        raise typer.Exit(BAD_USAGE)
    wanted = numbers or range(1, (until or len(STAGES)) + 1)
    return [stage for stage in STAGES if stage.number in wanted]


def _new_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        print(f"--keep {folder}: {error.strerror}. Choose a folder that does not exist.", file=sys.stderr)
        raise typer.Exit(BAD_USAGE) from None
    return folder.resolve()


if __name__ == "__main__":
    with until_interrupted():
        application(prog_name="python -m tutorials.build_your_own")
