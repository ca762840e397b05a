"""The button that asks Spark: one process at a time, and what it printed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from demo.errors import DemoError
from demo.processes import Processes
from demo.system import System
from demo.up.second_opinion import Opinion, SecondOpinion, reconciliation


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Processes]:
    with Processes(tmp_path) as processes:
        yield processes


def test_nobody_has_asked_yet(group: Processes) -> None:
    assert SecondOpinion(group.add("reconciliation", [sys.executable, "-c", ""])).latest() is None


def test_spark_is_asked_once_at_a_time_and_its_last_lines_are_shown(group: Processes, tmp_path: Path) -> None:
    end = tmp_path / "end"
    waits = f"import time, pathlib\nwhile not pathlib.Path({str(end)!r}).exists(): time.sleep(0.01)"
    source = f"{waits}\nprint('one\\ntwo'); raise SystemExit(1)"
    process = group.add("reconciliation", [sys.executable, "-c", source])
    opinion = SecondOpinion(process)
    opinion.ask()
    with pytest.raises(DemoError, match="Spark compares at the moment"):
        opinion.ask()
    first = opinion.latest()
    assert first is not None
    assert (first.exit_code, first.meaning, first.lines) == (None, "", ())
    end.touch()
    process.wait(60)
    last = opinion.latest()
    assert last is not None
    assert (last.exit_code, last.meaning, last.lines) == (1, "The books do not agree.", ("one", "two"))
    assert last.text == "one\ntwo"
    assert opinion.latest() == last, "the time stands still once it has ended"
    opinion.ask()


@pytest.mark.parametrize(
    ("exit_code", "meaning"),
    [(0, "The books agree."), (2, "The reconciliation could not tell."), (-9, "The reconciliation could not tell.")],
)
def test_an_exit_code_is_a_sentence(exit_code: int, meaning: str) -> None:
    assert Opinion(1.0, exit_code, ()).meaning == meaning


def test_the_verdict_is_the_object_that_the_process_printed() -> None:
    lines = ("Comparing", '{"is_consistent": true, "findings": []}', "")
    verdict = Opinion(1.0, 0, lines).verdict
    assert verdict is not None
    assert verdict["is_consistent"] is True
    assert Opinion(1.0, 2, lines).verdict is None, "it could not tell"
    assert Opinion(1.0, 0, ("{half",)).verdict is None
    assert Opinion(1.0, None, lines).verdict is None


def test_the_process_reads_the_databases_and_the_store_of_the_system(group: Processes, tmp_path: Path) -> None:
    system = SimpleNamespace(
        home=tmp_path, broker_stores=(tmp_path / "store",), environment={"ORDER_DATABASE_URL": "sqlite:///x"}
    )
    process = reconciliation(group, cast(System, system))
    assert process.environment["ORDER_DATABASE_URL"] == "sqlite:///x"
    assert not process.is_running
