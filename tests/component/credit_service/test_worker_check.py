"""The health check of one worker, which no other worker satisfies."""

import os
import socket
import subprocess
import sys

import pytest
from redis import RedisError

from credit_service.adapters.worker_heartbeats import TAKES_NONE_AFTER_S, Heartbeat, LivingWorker
from credit_service.worker import check
from credit_service.worker.check import find_worker

HERE = socket.gethostname()


def a_worker(
    name: str, *, host: str = HERE, pid: int | None = None, heard_s_ago: float = 1, **said: int | float | None
) -> LivingWorker:
    heartbeat = Heartbeat.model_validate(
        {"name": name, "host": host, "pid": pid or os.getpid(), "processes": 2, "age_s": 60, **said}
    )
    return LivingWorker(heartbeat, heard_s_ago)


def a_dead_process() -> int:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


def test_a_worker_is_found_by_its_name_alone() -> None:
    living = [a_worker("one"), a_worker("two")]
    assert find_worker(living, "two") is living[1]
    assert find_worker(living, "three") is None


def test_of_two_with_one_name_the_one_heard_last_counts() -> None:
    living = [a_worker("one", heard_s_ago=9), a_worker("one", heard_s_ago=2)]
    assert find_worker(living, "one") is living[1]


def test_a_worker_of_this_machine_whose_process_is_gone_is_not_alive_although_its_heartbeat_is_young() -> None:
    assert find_worker([a_worker("one", pid=a_dead_process())], "one") is None


def test_the_process_of_a_worker_elsewhere_cannot_be_looked_for() -> None:
    assert find_worker([a_worker("one", host="elsewhere", pid=a_dead_process())], "one") is not None


class Heartbeats:
    """What the check reads from Redis: workers, or an error."""

    def __init__(self, found: list[LivingWorker] | Exception) -> None:
        self.found = found

    def living(self) -> list[LivingWorker]:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def check_says(monkeypatch: pytest.MonkeyPatch, found: list[LivingWorker] | Exception, *arguments: str) -> int:
    monkeypatch.setenv("CREDIT_WORKER_NAME", "one")
    monkeypatch.setattr(sys, "argv", ["credit_service.worker", "--check", *arguments])
    monkeypatch.setattr(check, "WorkerHeartbeats", lambda _url, timeout_s: Heartbeats(found))
    return check.main()


def test_a_check_of_a_living_worker_succeeds(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_says(monkeypatch, [a_worker("one", heard_s_ago=2)]) == 0
    heard = f"worker one (process {os.getpid()}) sent a heartbeat 2.0 s ago, up for 60 s, "
    assert capsys.readouterr().out == f"{heard}has taken no task yet\n"
    assert check_says(monkeypatch, [a_worker("one", heard_s_ago=2, tasks_taken=7, taken_s_ago=12.3, takes_none_for_s=0)]) == 0
    assert capsys.readouterr().out == f"{heard}has taken 7 tasks, the last one 12 s ago\n"


def test_a_worker_that_takes_none_of_the_tasks_that_wait_fails_its_check_although_it_is_heard(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check_says(monkeypatch, [a_worker("one", tasks_taken=7, taken_s_ago=95, takes_none_for_s=TAKES_NONE_AFTER_S)]) == 1
    said = capsys.readouterr().err
    assert said.endswith(f"worker one (process {os.getpid()}) has taken none of the tasks that wait, for 40 s\n")
    assert check_says(monkeypatch, [a_worker("one", tasks_taken=7, taken_s_ago=39, takes_none_for_s=TAKES_NONE_AFTER_S - 1)]) == 0


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([a_worker("two")], "no heartbeat of a worker named one"),
        ([], "no heartbeat of a worker named one"),
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
