"""Runs the reconciliation with the same command as users, and measures its wall time, CPU time and memory."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final

import msgspec
import psutil
import pyarrow.parquet

from lab.benchmarks.reconciliation.faults import EXPECTED, Fault, injected
from lab.benchmarks.reconciliation.spark_cluster import SparkCluster

_POLL_S: Final = 0.2
_REST: Final = 20
"""The pause after a look at the memory, in times of the look's duration: the looks take at most 5 % of a processor."""
_END_WITHIN_S: Final = 5.0


class RunFailed(Exception):
    """Raised if the command ended without a result. The error message is the command's last output."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The time and memory that a command and its children have used."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    """The maximum sum of the processes' proportional set sizes (PSS), in bytes."""


@dataclass(frozen=True, slots=True)
class FaultCount:
    """The number of times that a fault was injected, and the number of times that it was found with the right class and cause."""

    fault: Fault
    injected: int
    found: int


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the reconciliation on `orders` orders. `invented` is the number of findings without an injected fault."""

    orders: int
    workers: int | None
    """The number of Spark workers, or None for one process with all processors."""
    usage: Usage
    faults: tuple[FaultCount, ...]
    invented: int

    @property
    def is_right(self) -> bool:
        """True if the run found all injected faults and nothing else."""
        return not self.invented and all(fault.found == fault.injected for fault in self.faults)


def reconcile(folder: Path, orders: int, memory: str, cluster: SparkCluster | None = None) -> Run:
    """Runs `python -m pipelines reconcile` on the data of `write_books`, on the cluster if there is one. Raises RunFailed.

    Spark's log is `spark.log` in the folder.
    """
    output = folder / "out"
    command = [*reconcile_command(folder, memory, output), "--store", str(folder / "store")]
    if cluster is None:
        answer, usage = measured(command)
    else:
        command += ["--master", cluster.url, "--spark-log", str(folder / "spark.log")]
        beside = [process.pid for process in (cluster.master, *cluster.workers)]
        answer, usage = measured(command, environment={**os.environ, **cluster.environment}, beside=beside)
    totals = msgspec.json.decode(answer.encode())["findings"]
    return Run(orders, None if cluster is None else len(cluster.workers), usage, *_compared(output, totals, orders))


def reconcile_command(folder: Path, memory: str, output: Path) -> list[str]:
    """Returns the command that reconciles the data of `write_books` and writes JSON."""
    databases = [f"--{name}-database-url=sqlite:///{folder}/{name}s.db" for name in ("order", "credit")]
    options = ["--json", "--memory", memory, "--output", str(output)]
    return [sys.executable, "-m", "pipelines", "reconcile", *databases, *options]


def measured(
    command: Sequence[str], *, environment: Mapping[str, str] | None = None, beside: Sequence[int] = ()
) -> tuple[str, Usage]:
    """Runs a command. Returns its output, and the time and memory that it and its children used.

    The running processes `beside` it, given by their ids, count too, with their children. Raises RunFailed unless the exit code
    is 0 or 1.
    """
    began_s = time.monotonic()
    cpu_s: dict[tuple[int, float], float] = {}
    peak_bytes, due_s = 0, began_s
    with TemporaryFile("w+") as printed, TemporaryFile("w+") as said:
        process = subprocess.Popen(command, stdout=printed, stderr=said, env=environment)
        root = psutil.Process(process.pid)
        roots = [root, *map(psutil.Process, beside)]
        try:
            while process.poll() is None:
                cpu_s.update(_cpu_s(roots))
                if (looked_s := time.monotonic()) >= due_s:
                    peak_bytes = max(peak_bytes, _memory(roots))
                    due_s = time.monotonic() + _REST * (time.monotonic() - looked_s)
                time.sleep(_POLL_S)
        finally:
            _end(root)
            process.wait()
        printed.seek(0)
        said.seek(0)
        answer = printed.read()
        if process.returncode not in (0, 1) or not answer:
            raise RunFailed(said.read().strip().rpartition("\n")[2])
        return answer, Usage(time.monotonic() - began_s, sum(cpu_s.values()), peak_bytes)


def _end(root: psutil.Process) -> None:
    """Kills a running command, including Spark's JVM and Python workers."""
    with suppress(psutil.NoSuchProcess):
        family = [*root.children(recursive=True), root]
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.terminate()
        _, left = psutil.wait_procs(family, timeout=_END_WITHIN_S)
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()


def _cpu_s(roots: Sequence[psutil.Process]) -> dict[tuple[int, float], float]:
    """Returns the CPU seconds of each process, keyed by its id and start."""
    used = {}
    for process in _families(roots):
        with suppress(psutil.Error):
            times = process.cpu_times()
            used[process.pid, process.create_time()] = times.user + times.system
    return used


def _memory(roots: Sequence[psutil.Process]) -> int:
    """Returns the memory of all processes in bytes. The system walks through all of their pages."""
    total = 0
    for process in _families(roots):
        with suppress(psutil.Error):
            total += process.memory_full_info().pss
    return total


def _families(roots: Sequence[psutil.Process]) -> Iterator[psutil.Process]:
    for root in roots:
        with suppress(psutil.Error):
            yield from (root, *root.children(recursive=True))


def _compared(output: Path, totals: Sequence[dict[str, Any]], orders: int) -> tuple[tuple[FaultCount, ...], int]:
    """Returns the number of times that each fault was injected and found, and the number of other findings.

    A finding belongs to the fault that has the same class and cause.
    """
    rows = pyarrow.parquet.read_table(output / "findings", columns=["finding", "cause"]).group_by(["finding", "cause"])
    counted = {(row["finding"], row["cause"]): row["finding_count"] for row in rows.aggregate([("finding", "count")]).to_pylist()}
    faults = [
        FaultCount(fault, count, counted.pop((finding.value, None if cause is None else cause.value), 0))
        for fault, count in injected(orders).items()
        for finding, cause in [EXPECTED[fault]]
    ]
    too_many = sum(max(0, fault.found - fault.injected) for fault in faults)
    healthy = sum(found["count"] for found in totals if found["finding"] in ("matched", "rolled_back"))
    missing = orders - sum(fault.injected for fault in faults) - healthy
    return tuple(faults), sum(counted.values()) + too_many + max(0, missing)
