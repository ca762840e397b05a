"""Fixtures that run a supervisor, a name server and brokers as separate processes, on free ports."""

import sys
from pathlib import Path

import psutil
import pytest

from demo.ports import free_ports, free_ports_of_brokers
from demo.processes import Process, Processes, prints
from demo.system import BROKER_PORTS_APART, BROKER_SETTINGS, QUICK_CHECKS
from rocketmq_broker.client.instance import routes

MAX_BROKERS = 3


class RunningCluster:
    """A supervisor with its child processes. A restart uses the same folder and ports."""

    def __init__(self, processes: Processes, home: Path) -> None:
        self.processes = processes
        self.folder = home / "cluster"
        (namesrv_port,) = free_ports(1)
        self.namesrv_addr = f"127.0.0.1:{namesrv_port}"
        ports = {
            "listenPort": str(free_ports_of_brokers(MAX_BROKERS, BROKER_PORTS_APART)),
            "namesrvListenPort": str(namesrv_port),
        }
        self.settings = {**BROKER_SETTINGS, **QUICK_CHECKS, **ports, "storePathRootDir": str(self.folder)}
        self._starts = 0

    @property
    def conf(self) -> Path:
        """Writes the broker.conf, and returns its path."""
        path = self.folder.with_suffix(".conf")
        path.write_text("".join(f"{name}={value}\n" for name, value in self.settings.items()))
        return path

    def add(self, brokers: int) -> Process:
        """Adds a supervisor without starting it."""
        self._starts += 1
        command = [sys.executable, "-m", "rocketmq_broker", "-c", str(self.conf), "--brokers", str(brokers)]
        return self.processes.add(f"cluster-{self._starts}", command, is_ready=prints("The cluster["))

    def start(self, brokers: int) -> Process:
        """Starts a supervisor and waits until all brokers are ready."""
        supervisor = self.add(brokers)
        supervisor.start()
        return supervisor

    @staticmethod
    def child(supervisor: Process, name: str) -> psutil.Process:
        """Returns the process of a broker, or of the name server (`namesrv`)."""
        (found,) = (
            child
            for child in psutil.Process(supervisor.pid).children()
            if any(argument.endswith(f"/{name}.conf") for argument in child.cmdline())
        )
        return found


@pytest.fixture
def cluster(processes: Processes, tmp_path: Path) -> RunningCluster:
    """Returns a cluster that has not been started."""
    return RunningCluster(processes, tmp_path)


@pytest.fixture(autouse=True)
def _quick_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes clients update their routes every half second instead of every 30 s."""
    monkeypatch.setattr(routes, "POLL_INTERVAL_S", 0.5)
