"""Tests of the button that starts a comparison by Spark.

Only one comparison runs at a time, in a process that is reused.
"""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from demo.errors import DemoError
from demo.processes import Process, Processes
from demo.system import System
from demo.up.second_opinion import Opinion, SecondOpinion, SparkInstallation, reconciliation
from tests.waiting import wait_until

AGREE, DIFFER = '{"is_consistent": true}', '{"is_consistent": false}'


def judge(processes: Processes, *answers: str) -> Process:
    """Adds a process that prints the first answer at once, and the next answer for each input line.

    The process exits after the last answer.
    """
    source = f"answers = {answers!r}\nprint(answers[0])\nfor answer in answers[1:]: input(); print('compares'); print(answer)"
    return processes.add("reconciliation", [sys.executable, "-c", source], is_asked=True)


def asked(opinion: SecondOpinion) -> Opinion:
    opinion.ask()
    wait_until(lambda: not opinion.is_running)
    latest = opinion.latest()
    assert latest is not None
    return latest


def test_nobody_has_asked_yet(processes: Processes) -> None:
    opinion = SecondOpinion(judge(processes, AGREE))
    assert (opinion.latest(), opinion.is_running) == (None, False)


def test_spark_is_asked_once_at_a_time_and_its_last_lines_are_shown(processes: Processes, tmp_path: Path) -> None:
    end = tmp_path / "end"
    waits = f"import time, pathlib\nwhile not pathlib.Path({str(end)!r}).exists(): time.sleep(0.01)"
    source = f"{waits}\nprint('one')\nprint({DIFFER!r})\ninput()"
    process = processes.add("reconciliation", [sys.executable, "-c", source], is_asked=True)
    opinion = SecondOpinion(process)
    opinion.ask()
    with pytest.raises(DemoError, match="a comparison is running"):
        opinion.ask()
    first = opinion.latest()
    assert first is not None
    assert (first.is_running, first.meaning, first.lines) == (True, "", ())
    end.touch()
    wait_until(lambda: not opinion.is_running)
    last = opinion.latest()
    assert last is not None
    assert (last.is_running, last.meaning, last.text) == (False, "The books do not agree.", f"one\n{DIFFER}")
    assert opinion.latest() == last, "the time stands still once it has ended"


def test_the_process_that_answered_is_asked_again(processes: Processes) -> None:
    process = judge(processes, DIFFER, "could not tell: the database is away", AGREE)
    opinion = SecondOpinion(process)
    assert asked(opinion).meaning == "The books do not agree."
    pid = process.pid
    away = asked(opinion)
    assert (away.meaning, away.lines) == (
        "The reconciliation failed.", ("compares", "could not tell: the database is away")
    )  # fmt: skip
    assert asked(opinion).meaning == "The books agree."
    assert process.pid == pid


def test_a_process_that_has_ended_is_started_again(processes: Processes) -> None:
    process = judge(processes, AGREE)
    opinion = SecondOpinion(process)
    asked(opinion)
    wait_until(lambda: not process.is_running)
    pid = process.pid
    again = asked(opinion)
    assert (again.is_consistent, again.lines) == (True, (AGREE,))
    assert process.pid != pid


def test_a_process_that_takes_no_more_questions_is_replaced(processes: Processes) -> None:
    source = f"import os, time\nos.close(0)\nprint({AGREE!r})\ntime.sleep(600)"
    process = processes.add("reconciliation", [sys.executable, "-c", source], is_asked=True)
    opinion = SecondOpinion(process)
    asked(opinion)
    pid = process.pid
    assert asked(opinion).meaning == "The books agree."
    assert process.pid != pid


def test_a_process_that_ends_without_an_answer_could_not_tell(processes: Processes) -> None:
    opinion = SecondOpinion(processes.add("reconciliation", [sys.executable, "-c", "print('Killed')"], is_asked=True))
    assert (asked(opinion).meaning, asked(opinion).lines) == ("The reconciliation failed.", ("Killed",))


def installation(processes: Processes, source: str) -> SparkInstallation:
    return SparkInstallation(processes.add("spark", [sys.executable, "-c", source]))


def test_nothing_is_asked_of_a_spark_that_is_being_installed(processes: Processes, tmp_path: Path) -> None:
    end = tmp_path / "end"
    waits = f"import time, pathlib\nwhile not pathlib.Path({str(end)!r}).exists(): time.sleep(0.01)"
    spark = installation(processes, f"print('setup: 1 of 6 packages fetched, 9 MB')\n{waits}")
    opinion = SecondOpinion(judge(processes, AGREE), spark)
    assert (spark.is_complete, spark.last_line) == (False, "")
    spark.begin()
    wait_until(lambda: spark.last_line == "1 of 6 packages fetched, 9 MB")
    with pytest.raises(DemoError, match="Spark is still being installed"):
        opinion.ask()
    end.touch()
    wait_until(lambda: spark.is_complete)
    assert asked(opinion).meaning == "The books agree."


def test_a_failed_installation_says_why_and_can_begin_again(processes: Processes, tmp_path: Path) -> None:
    mended = tmp_path / "mended"
    spark = installation(
        processes, f"import sys, pathlib\npathlib.Path({str(mended)!r}).exists() or sys.exit('setup: no network')"
    )
    spark.begin()
    wait_until(lambda: spark.has_failed)
    assert (spark.is_complete, spark.last_line) == (False, "no network")
    mended.touch()
    spark.begin()
    wait_until(lambda: spark.is_complete)
    assert not spark.has_failed
    spark.begin()
    assert spark.is_complete, "it is not installed twice"


def test_a_spark_that_is_there_is_not_installed() -> None:
    spark = SparkInstallation()
    spark.begin()
    assert (spark.is_complete, spark.has_failed, spark.last_line) == (True, False, "")


def test_the_verdict_is_the_object_that_the_process_printed() -> None:
    lines = ("Comparing", '{"is_consistent": true, "findings": []}', "")
    verdict = Opinion(1.0, False, lines).verdict
    assert verdict is not None
    assert verdict["is_consistent"] is True
    assert Opinion(1.0, False, ("{half",)).verdict is None
    assert Opinion(1.0, True, lines).verdict is None


def test_the_process_reads_the_databases_and_the_store_of_the_system(processes: Processes, tmp_path: Path) -> None:
    system = SimpleNamespace(
        home=tmp_path, broker_stores=(tmp_path / "store",), environment={"ORDER_DATABASE_URL": "sqlite:///x"}
    )
    process = reconciliation(processes, cast(System, system))
    assert process.environment["ORDER_DATABASE_URL"] == "sqlite:///x"
    assert not process.is_running
