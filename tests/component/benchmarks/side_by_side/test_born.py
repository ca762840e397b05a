"""Tests that the benchmark determines the start time of a broker's process with an error of at most 0.01 s."""

import subprocess
import time

import psutil

from lab.benchmarks.side_by_side.usage import born_s


def test_a_process_began_when_it_was_started() -> None:
    before_s = time.time()
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        after_s = time.time()
        began_s = born_s(psutil.Process(sleeper.pid))
        sleeper.kill()
    assert before_s - 0.05 <= began_s <= after_s + 0.05
