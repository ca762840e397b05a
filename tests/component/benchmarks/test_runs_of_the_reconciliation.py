"""Tests that a benchmark of the reconciliation reads all output and leaves no process running."""

import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from lab.benchmarks.reconciliation import runs
from lab.benchmarks.reconciliation.runs import RunFailed, measured


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_command_that_prints_much_is_read_whole() -> None:
    printed, usage = measured([sys.executable, "-c", "print('x' * 1_000_000)"])
    assert len(printed) == 1_000_001
    assert usage.wall_s > 0


def test_the_memory_of_processes_beside_the_command_counts() -> None:
    program = "x = bytearray(b'x') * 200_000_000; print(flush=True); import time; time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as beside:
        assert beside.stdout is not None
        beside.stdout.readline()
        _, usage = measured([sys.executable, "-c", "import time; time.sleep(1); print('done')"], beside=[beside.pid])
        beside.kill()
    assert usage.peak_bytes > 200_000_000


def test_a_command_that_could_not_tell_is_a_failure_with_its_last_words() -> None:
    with pytest.raises(RunFailed, match=r"^no such store$"):
        measured(
            [
                sys.executable,
                "-c",
                "import sys; print('warning', file=sys.stderr); print('no such store', file=sys.stderr); sys.exit(2)",
            ]
        )


def test_a_run_that_is_broken_off_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pids = tmp_path / "pids"
    child = "import time; time.sleep(600)"
    parent = (
        "import os, subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}])\n"
        f"open({str(pids) + '.new'!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        f"os.rename({str(pids) + '.new'!r}, {str(pids)!r})\n"
        "time.sleep(600)\n"
    )

    def broken_off_once_it_runs(seconds: float) -> None:
        threading.Event().wait(seconds)
        if pids.exists():
            raise KeyboardInterrupt

    # The module's own clock, and not the one of all threads: Spark's sleep as well.
    monkeypatch.setattr(runs, "time", SimpleNamespace(sleep=broken_off_once_it_runs, monotonic=time.monotonic))
    with pytest.raises(KeyboardInterrupt):
        measured([sys.executable, "-c", parent])
    assert [pid for pid in map(int, pids.read_text().split()) if is_running(pid)] == []
