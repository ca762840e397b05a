"""Runs a standalone Spark cluster on the loopback interface: a master, and workers with one processor each."""

import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pyspark

from demo.ports import free_ports
from demo.processes import Process, Processes, prints

_SPARK_CLASS: Final = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
_LOOPBACK: Final = {"SPARK_LOCAL_IP": "127.0.0.1"}
_START_TIMEOUT_S: Final = 300
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class SparkCluster:
    """A running cluster."""

    url: str
    """The URL of the master, for --master."""
    memory: str
    """The heap of each worker's executor, such as 1g."""
    master: Process
    workers: tuple[Process, ...]
    _folder: Path
    _submit_options: str

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a program that uses the cluster."""
        submit = f"--executor-memory {self.memory} {self._submit_options} pyspark-shell"
        return {**_LOOPBACK, "PYSPARK_PYTHON": sys.executable, "PYSPARK_SUBMIT_ARGS": submit}

    def lose_worker(self, number: int) -> None:
        """Kills a worker and its executors with SIGKILL, as if its machine was lost."""
        os.killpg(self.workers[number].pid, signal.SIGKILL)

    def executor_output(self, number: int) -> str:
        """Returns what the executors of a worker have printed so far."""
        return "".join(log.read_text(errors="replace") for log in self._folder.glob(f"worker-{number}/app-*/*/stderr"))


def start_spark_cluster(
    processes: Processes,
    folder: Path,
    *,
    workers: int,
    memory: str,
    environment: Mapping[str, str] = _NOTHING,
    submit_options: str = "",
) -> SparkCluster:
    """Starts a cluster whose executors cannot import our code. Raises ProcessFailed.

    The executors' files are in `folder`. `memory` is the heap of each executor, `environment` that of master and workers,
    `submit_options` are for spark-submit.
    """
    port, master_page, *pages = free_ports(2 + workers)
    url = f"spark://127.0.0.1:{port}"
    no_fixed_port = {"SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false"}
    complete = {**_LOOPBACK, **no_fixed_port, **environment, "PYTHONPATH": ""}

    def add(name: str, program: str, page: int, *arguments: str, ready: str) -> Process:
        command = [_SPARK_CLASS, f"org.apache.spark.deploy.{program}", "--host", "127.0.0.1", "--webui-port", str(page)]
        return processes.add(name, [*command, *arguments], environment=complete, is_ready=prints(ready))

    master = add("master", "master.Master", master_page, "--port", str(port), ready="I have been elected leader")
    master.start(_START_TIMEOUT_S)
    started = []
    for number, page in enumerate(pages):
        place = str(folder / f"worker-{number}")
        options = ("--cores", "1", "--memory", memory, "--work-dir", place, url)
        worker = add(f"worker-{number}", "worker.Worker", page, *options, ready="Successfully registered with master")
        worker.spawn()
        started.append(worker)
    for worker in started:
        worker.wait_until_ready(_START_TIMEOUT_S)
    return SparkCluster(url, memory, master, tuple(started), folder, submit_options)
