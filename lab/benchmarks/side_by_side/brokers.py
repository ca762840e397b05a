"""The compared brokers, each in its own process."""

import asyncio
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import psutil

from demo.ports import free_ports
from demo.processes import Process, Processes, ProcessFailed, prints
from lab.benchmarks.side_by_side.generator import PROGRAM
from lab.benchmarks.side_by_side.probe import first_accepted_s
from lab.benchmarks.side_by_side.usage import born_s

PEER = Path(__file__).resolve().parents[3] / "tests" / "foreign" / "apache" / "peer"
SYNC, ASYNC = "SYNC_FLUSH", "ASYNC_FLUSH"
"""The values of flushDiskType."""
APACHE_VERSION, APACHE_5_VERSION = "4.9.7", "5.5.0"
APACHE_PROXY_VERSION = "5.3.3"
"""The version of RocketMQ that is measured with gRPC, because version 4.9.7 has no proxy.

The proxy runs in the same process as the broker (local mode).
"""
APACHE_HEAP = "2g"
START_TIMEOUT_S = 300
"""The time limit in seconds for the start of a broker. The first start of Apache's broker downloads its jars."""


class Side(StrEnum):
    """The brokers that are compared. Ratios are relative to APACHE."""

    OURS = "ours"
    """The compiled broker if it is built, otherwise the Python source."""
    INTERPRETED = "ours, interpreted"
    APACHE = "Apache"
    APACHE_5 = f"Apache {APACHE_5_VERSION}"
    FLOOR = "floor"
    """The floor of our generator (lab/benchmarks/load/floor.go), which only appends frames and responds."""


@dataclass(frozen=True, slots=True)
class Checks:
    """The broker's settings for check-backs, in milliseconds."""

    transaction_time_out: int = 6_000
    transaction_check_interval: int = 60_000


NEVER_DUE = Checks(24 * 3_600_000, 3_600_000)
"""The settings with which no check-back is due during a measurement."""
ALL_DUE = Checks(1_000, 10_000)
"""The settings with which all transactions of an earlier start are due at RocketMQ's first check.

The first check is one interval after the start.
"""


class BrokerUnderTest(ABC):
    """A broker with its name server. The folder `home` contains settings, store and logs."""

    checks = Checks()
    """The settings for check-backs. They take effect at the next start."""
    has_grpc = False
    """True if the next start also opens a gRPC port."""

    def __init__(self, processes: Processes, home: Path, flush: str) -> None:
        """Creates the broker without starting it. `flush` is SYNC_FLUSH or ASYNC_FLUSH.

        All other settings except `checks` have their defaults.
        """
        self.home = home
        self.was_started = False
        self._processes = processes
        self._flush = flush
        self._namesrv_port, self._port, self._grpc_port = free_ports(3)
        home.mkdir(parents=True, exist_ok=True)

    @property
    def namesrv_addr(self) -> str:
        """The name server's address."""
        return f"127.0.0.1:{self._namesrv_port}"

    @property
    def address(self) -> str:
        """The broker's address."""
        return f"127.0.0.1:{self._port}"

    @property
    def grpc_endpoint(self) -> str:
        """The address for gRPC clients."""
        return f"127.0.0.1:{self._grpc_port}"

    def start(self) -> float:
        """Starts the broker. Returns the seconds from the start of its process to its first accepted message.

        After `kill` or `stop`, the broker opens the same store again. Raises ProcessFailed.
        """
        self.was_started = True
        self._spawn()
        accepted_s = asyncio.run(first_accepted_s(self.address, START_TIMEOUT_S))
        self._wait_until_ready()
        return accepted_s - born_s(self.process)

    @abstractmethod
    def _spawn(self) -> None:
        """Starts the processes."""

    @abstractmethod
    def _wait_until_ready(self) -> None:
        """Waits until the broker has registered with the name server."""

    @property
    @abstractmethod
    def process(self) -> psutil.Process:
        """The broker's process."""

    @abstractmethod
    def kill(self) -> None:
        """Kills the broker with SIGKILL. Its helper processes then end without a signal."""

    @abstractmethod
    def stop(self) -> None:
        """Stops broker and name server."""


class OneProcess(BrokerUnderTest):
    """A broker that is one child process."""

    _process: Process

    @property
    def process(self) -> psutil.Process:
        """The broker's process."""
        return psutil.Process(self._process.pid)

    def kill(self) -> None:
        """Kills the process."""
        self._process.kill()


class OurBroker(OneProcess):
    """Our broker, started by `python -m rocketmq_broker` with its name server in the same process."""

    python_options: Sequence[str] = ()
    """The command-line options of `python`, before `-m rocketmq_broker`."""
    environment: Mapping[str, str] = {}
    """Environment variables, which take precedence over those of this program."""

    def _spawn(self) -> None:
        settings = {
            "listenPort": self._port,
            "namesrvListenPort": self._namesrv_port,
            "flushDiskType": self._flush,
            "transactionTimeOut": self.checks.transaction_time_out,
            "transactionCheckInterval": self.checks.transaction_check_interval,
            "storePathRootDir": self.home / "store",
            **({"grpcServerPort": self._grpc_port} if self.has_grpc else {}),
        }
        configuration = self.home / "broker.conf"
        configuration.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        command = [sys.executable, *self.python_options, "-m", "rocketmq_broker", "-c", str(configuration)]
        self._process = self._processes.add(
            f"our-{self.home.name}", command, environment=self.environment, is_ready=prints("boot success")
        )
        self._process.spawn()

    def _wait_until_ready(self) -> None:
        self._process.wait_until_ready()

    def stop(self) -> None:
        """Stops the broker cleanly."""
        self._process.stop()


class InterpretedBroker(OurBroker):
    """Our broker, run from its Python source even if a compiled broker is installed."""

    environment: Mapping[str, str] = {"PYTHONPATH": "", "ROCKETMQ_BROKER_COMPILED": ""}


class ApacheBroker(BrokerUnderTest):
    """Apache RocketMQ, started by tests/foreign/apache/peer. Name server and broker run in separate JVMs."""

    version = APACHE_VERSION
    version_with_proxy = APACHE_PROXY_VERSION
    """The version that is started if a gRPC port is requested."""

    def _spawn(self) -> None:
        (self.home / "broker.pid").unlink(missing_ok=True)
        version = self.version_with_proxy if self.has_grpc else self.version
        self._peer = self._processes.add(
            f"peer-{self.home.name}", [str(PEER), "start", str(self.home), version], environment=self._settings()
        )
        self._peer.spawn()

    def _settings(self) -> Mapping[str, str]:
        return {
            "NAMESRV_PORT": str(self._namesrv_port),
            "BROKER_PORT": str(self._port),
            "FLUSH": self._flush,
            "HEAP": APACHE_HEAP,
            "TRANSACTION_TIMEOUT_MS": str(self.checks.transaction_time_out),
            "CHECK_INTERVAL_MS": str(self.checks.transaction_check_interval),
            **({"PROXY_PORT": str(self._grpc_port)} if self.has_grpc else {}),
        }

    def _wait_until_ready(self) -> None:
        if self._peer.wait(START_TIMEOUT_S) != 0:
            raise ProcessFailed(f"Apache RocketMQ did not start:\n{self._peer.output()}")

    @property
    def process(self) -> psutil.Process:
        """The broker's process."""
        return psutil.Process(int((self.home / "broker.pid").read_text()))

    def kill(self) -> None:
        """Kills broker and name server, because `peer` always starts both."""
        self._end("drop")

    def stop(self) -> None:
        """Stops broker and name server cleanly."""
        self._end("stop")

    def _end(self, how: str) -> None:
        end = self._processes.add(f"peer-{how}", [str(PEER), how, str(self.home)])
        end.spawn()
        if end.wait(timeout_s=60) != 0:
            raise ProcessFailed(f"Apache RocketMQ did not end:\n{end.output()}")
        self._peer.stop()


class Apache5Broker(ApacheBroker):
    """The newest RocketMQ on Maven Central. Its proxy is started only if gRPC is requested."""

    version = APACHE_5_VERSION
    version_with_proxy = APACHE_5_VERSION


class Floor(OneProcess):
    """The floor. It does not open the store of an earlier start."""

    def _spawn(self) -> None:
        command = [str(PROGRAM), "floor", "-broker", self.address, "-file", str(self.home / "log")]
        self._process = self._processes.add(f"floor-{self.home.name}", [*command, *(["-sync"] if self._flush == SYNC else [])])
        self._process.spawn()

    def _wait_until_ready(self) -> None:
        """Returns at once: the floor has no name server."""

    def stop(self) -> None:
        """Kills the floor, which has nothing to complete."""
        self._process.kill()


BROKERS: Mapping[Side, type[BrokerUnderTest]] = {
    Side.OURS: OurBroker,
    Side.INTERPRETED: InterpretedBroker,
    Side.APACHE: ApacheBroker,
    Side.APACHE_5: Apache5Broker,
    Side.FLOOR: Floor,
}
