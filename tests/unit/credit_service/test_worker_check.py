"""The health check of one worker, which no other worker satisfies."""

import os
import socket
import subprocess
import sys

from credit_service.adapters.worker_heartbeats import Heartbeat, LivingWorker
from credit_service.worker.check import find_worker

HERE = socket.gethostname()


def a_worker(name: str, *, host: str = HERE, pid: int | None = None, heard_s_ago: float = 1) -> LivingWorker:
    return LivingWorker(Heartbeat(name=name, host=host, pid=pid or os.getpid(), processes=2, age_s=60), heard_s_ago)


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
