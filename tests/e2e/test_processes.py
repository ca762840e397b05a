"""Tests of the class that runs the processes of the demo and of the tests."""

import signal
import sys
import time

import psutil
import pytest

from demo.processes import Process, Processes, ProcessFailed, prints

pytestmark = pytest.mark.e2e
SAYS_READY = "import time; print('ready', flush=True); time.sleep(60)"
WITH_A_CHILD = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SAYS_READY!r}]).wait()"


def python(processes: Processes, program: str) -> Process:
    return processes.add("program", [sys.executable, "-c", program], is_ready=prints("ready"))


def test_a_process_that_ends_before_it_is_ready_says_why(processes: Processes) -> None:
    with pytest.raises(ProcessFailed, match=r"exit code 3:\nno port"):
        python(processes, "import sys; print('no port'); sys.exit(3)").start()


def test_a_process_that_is_not_ready_in_time_shows_its_log(processes: Processes) -> None:
    with pytest.raises(ProcessFailed, match=r"not ready after 0\.5 s"):
        python(processes, "import time; time.sleep(60)").start(timeout_s=0.5)


def test_a_killed_process_starts_again_and_is_ready_by_what_it_prints_anew(processes: Processes) -> None:
    process = python(processes, SAYS_READY)
    process.start()
    process.kill()
    assert process.exit_code == -signal.SIGKILL
    first = process.pid
    process.start()
    assert process.is_running
    assert process.pid != first
    assert process.output() == "ready\n"


def test_stopping_ends_the_children_too(processes: Processes) -> None:
    process = python(processes, WITH_A_CHILD)
    process.start()
    children = psutil.Process(process.pid).children()
    assert len(children) == 1
    process.stop()
    assert ends(children[0])


def ends(process: psutil.Process) -> bool:
    deadline = time.monotonic() + 30
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
