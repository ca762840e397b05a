"""Ctrl-C ends each program of the checkout with a sentence and exit status 130, never with a traceback."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from rocketmq_broker.stop_signals import INTERRUPTED, until_interrupted

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("broker/rocketmq_broker", "demo", "deploy", "lab", "pipelines", "tutorials")
OTHERWISE = {
    "lab/benchmarks/orders/outbox_service.py": "a service that a benchmark starts",
    "lab/benchmarks/reconciliation/table_sources.py": "a step that a benchmark starts",
    "lab/benchmarks/reconciliation/two_tables/with_datacompy.py": "a step that a benchmark starts",
    "lab/benchmarks/reconciliation/two_tables/with_duckdb.py": "a step that a benchmark starts",
    "broker/rocketmq_broker/__main__.py": "it stops well, with exit status 0",
    "broker/rocketmq_broker/admin/__main__.py": "it has its own exit status, and a console that stops well",
    "broker/rocketmq_broker/cluster/member.py": "it runs another program, in a session without Ctrl-C",
    "broker/rocketmq_broker/nameserver/__main__.py": "it stops well, with exit status 0",
    "broker/rocketmq_broker/platform/flush_helper.py": "a process that the broker starts",
    "demo/up/__main__.py": "it says itself that all processes are stopped",
    "demo/reaper.py": "a process that the demo starts",
    "pipelines/commands/make_class_archive.py": "a step of deploy/scripts/setup, which says how to go on",
    "pipelines/sources/spark_workers.py": "a process that Spark starts",
    "deploy/scripts/changed_tests.py": "it ends at once",
    "deploy/scripts/compile_protos.py": "it ends at once",
    "tutorials/build_your_own/examples.py": "it ends at once",
    "tutorials/build_your_own/solution/__main__.py": "a broker that the tester starts",
    "tutorials/build_your_own/wrong_broker.py": "a broker that the tester starts",
    "tutorials/halfway/services.py": "a process that the programs of a chapter start",
}
"""Programs without the helper, and why."""


def programs() -> list[Path]:
    found = (
        path
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "build/" not in str(path.relative_to(ROOT))
    )
    return [path for path in found if 'if __name__ == "__main__":' in path.read_text() and not _is_of_a_chapter(path)]


def _is_of_a_chapter(path: Path) -> bool:
    """Returns whether the path is a chapter's program. Chapters print their programs, which are as short as possible."""
    return re.search(r"tutorials/\w+-[\w-]+/", str(path)) is not None


@pytest.mark.parametrize("path", programs(), ids=lambda path: str(path.relative_to(ROOT)))
def test_each_program_ends_with_a_sentence(path: Path) -> None:
    ends = "with until_interrupted(" in path.read_text().split('if __name__ == "__main__":')[-1]
    assert ends != (str(path.relative_to(ROOT)) in OTHERWISE), (
        "write `with until_interrupted():` there, or the reason into OTHERWISE"
    )


def interrupted() -> None:
    raise KeyboardInterrupt


def by_typer() -> None:
    application = typer.Typer(add_completion=False)
    application.command()(interrupted)
    application(args=[])


@pytest.mark.parametrize("program", [interrupted, by_typer])
def test_ctrl_c_gives_the_sentence_and_the_exit_status(program: Callable[[], None], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, until_interrupted("Stopped: nothing is written."):
        program()
    assert ended.value.code == INTERRUPTED
    assert capsys.readouterr().err == "\nStopped: nothing is written.\n"


def said_it_itself() -> None:
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def test_a_program_that_spoke_itself_gets_no_second_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    application = typer.Typer(add_completion=False)
    application.command()(said_it_itself)
    with pytest.raises(SystemExit) as ended, until_interrupted():
        application(args=[])
    assert ended.value.code == INTERRUPTED
    assert capsys.readouterr().err == ""


def test_other_endings_stay_as_they_are() -> None:
    with pytest.raises(SystemExit) as ended, until_interrupted():
        raise SystemExit(3)
    assert ended.value.code == 3
