"""Tests that a process of a cluster exits when its supervisor exits."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

PATIENCE_S = 60


@contextmanager
def member(folder: Path, program: str) -> Iterator[subprocess.Popen[str]]:
    """Starts a process that runs the program, and yields it. Its input is closed as if the supervisor had exited."""
    (folder / "program_of_a_member.py").write_text(program)
    path = os.pathsep.join([str(folder), *sys.path])
    command = [sys.executable, "-m", "rocketmq_broker.cluster.member", "program_of_a_member", "argument"]
    environment = {**os.environ, "PYTHONPATH": path}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(
    "program",
    [
        "print(1, flush=True)\nwhile True: pass",
        "import ctypes\nprint(1, flush=True)\nctypes.PyDLL(None).pause()",
        "import os, signal\nprint(1, flush=True)\nos.kill(os.getpid(), signal.SIGSTOP)",
        "import signal, subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)\n"
        "print(1, flush=True)\nsignal.pause()",
    ],
    ids=["busy", "hangs with the interpreter's lock", "stopped", "has a child"],
)
def test_it_ends_with_its_supervisor(tmp_path: Path, program: str) -> None:
    with member(tmp_path, program) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children()]
        process.stdin.close()
        assert process.wait(PATIENCE_S) == -signal.SIGKILL
        assert psutil.wait_procs(family, timeout=PATIENCE_S)[1] == []


def test_its_arguments_and_exit_status_are_those_of_the_program_and_its_output_ends_with_it(tmp_path: Path) -> None:
    with member(tmp_path, "import sys\nif __name__ == '__main__':\n    print(sys.argv[1:])\n    sys.exit(3)") as process:
        assert process.stdout is not None
        assert process.stdout.read() == "['argument']\n"
        assert process.wait(PATIENCE_S) == 3
