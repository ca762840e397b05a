"""Tests of a worker's health check, which other workers cannot satisfy."""

import sys

import pytest
from redis import RedisError

from credit_service.adapters.workers import TAKES_NONE_AFTER_S, LivingWorker
from credit_service.worker import check


def a_worker(name: str, *, pid: int = 7, idle_s: float = 1) -> LivingWorker:
    return LivingWorker(name, pid, processes=2, age_s=60, idle_s=idle_s, takes_tasks=idle_s < TAKES_NONE_AFTER_S)


class Workers:
    """A fake registry that returns the given workers or raises the given error."""

    def __init__(self, found: list[LivingWorker] | Exception) -> None:
        self.found = found

    def living(self) -> list[LivingWorker]:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def check_says(monkeypatch: pytest.MonkeyPatch, found: list[LivingWorker] | Exception, *arguments: str) -> int:
    monkeypatch.setenv("CREDIT_WORKER_NAME", "one")
    monkeypatch.setattr(sys, "argv", ["credit_service.worker", "--check", *arguments])
    monkeypatch.setattr(check, "Workers", lambda _redis: Workers(found))
    return check.main()


def test_a_check_of_a_living_worker_succeeds(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_says(monkeypatch, [a_worker("two", idle_s=90), a_worker("one", idle_s=2)]) == 0
    assert capsys.readouterr().out == "worker one (process 7) asked for a task 2 s ago, up for 60 s\n"


def test_of_two_with_one_name_the_one_that_asked_last_counts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of two connections with the same worker name, the most recently active one counts, as after a restart."""
    assert check_says(monkeypatch, [a_worker("one", pid=7, idle_s=90), a_worker("one", pid=8, idle_s=1)]) == 0
    assert "process 8" in capsys.readouterr().out


def test_a_worker_that_asks_for_no_task_for_long_fails_its_check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check_says(monkeypatch, [a_worker("one", idle_s=TAKES_NONE_AFTER_S)]) == 1
    assert capsys.readouterr().err.endswith("worker one (process 7) has asked for no task for 40 s\n")
    assert check_says(monkeypatch, [a_worker("one", idle_s=TAKES_NONE_AFTER_S - 1)]) == 0


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([a_worker("two")], "no connection of a worker named one"),
        ([], "no connection of a worker named one"),
        (RedisError("refused"), "Redis does not answer: refused"),
    ],
)
def test_a_check_without_that_worker_or_without_redis_fails_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], found: list[LivingWorker] | Exception, words: str
) -> None:
    assert check_says(monkeypatch, found) == 1
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


def test_a_check_with_a_wrong_setting_names_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CREDIT_WORKER_PROCESSES", "0")
    assert check_says(monkeypatch, []) == 2
    assert "CREDIT_WORKER_PROCESSES" in capsys.readouterr().err
