"""Runs the measured system: broker, Redis, worker, credit service, and one of three order services."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from demo.processes import Process, Processes, answers
from demo.system import System
from lab.benchmarks.orders.outbox_service import RELAY
from lab.benchmarks.orders.sample import Case, Delivery
from lab.benchmarks.side_by_side.brokers import ApacheBroker
from lab.benchmarks.side_by_side.usage import used_cpu_s
from tests.postgresql_server import new_database

SYNC = "SYNC_FLUSH"


class NoPostgresql(Exception):
    """Raised if PostgreSQL is not installed."""


@dataclass(frozen=True, slots=True)
class Running:
    """The running system that is measured."""

    order_url: str
    credit_database_url: str
    processes: Mapping[str, psutil.Process]

    def cpu_s(self) -> dict[str, float]:
        """Returns the CPU time in seconds that each process and its children have used."""
        return {
            name: sum(map(used_cpu_s, (process, *process.children(recursive=True)))) for name, process in self.processes.items()
        }


@contextmanager
def running(case: Case, home: Path) -> Iterator[Running]:
    """Starts the system, and stops it at the end of the block. Raises ProcessFailed or NoPostgresql."""
    with Processes(home / "logs") as processes:
        apache = ApacheBroker(processes, home / "apache", SYNC) if case.broker == "Apache" else None
        try:
            if apache is not None:
                apache.start()
            yield _start(case, home, processes, apache)
        finally:
            if apache is not None:
                apache.stop()


def _start(case: Case, home: Path, processes: Processes, apache: ApacheBroker | None) -> Running:
    # RocketMQ's default check times: no check-back is due while orders are placed.
    system = System(processes, home, broker_settings={}, namesrv_addr=apache.namesrv_addr if apache else None)
    order_service = _order_service(case.delivery, processes, system)
    databases = _databases(case.database)
    services = (system.redis, system.worker, system.credit_service, order_service)
    for service in services:
        service.environment.update(databases)
    if apache is None:
        system.broker.start()
    for service in services:
        service.spawn()
    for service in services:
        service.wait_until_ready()
    ours = {"broker": psutil.Process(system.broker.pid)} if apache is None else {"broker": apache.process}
    measured = ours | {
        name: psutil.Process(process.pid)
        for name, process in (
            ("order service", order_service),
            ("worker", system.worker),
            ("credit service", system.credit_service),
        )
    }
    return Running(system.order_url, databases.get("CREDIT_DATABASE_URL", system.credit_database_url), measured)


def _order_service(delivery: Delivery, processes: Processes, system: System) -> Process:
    if delivery is Delivery.TRANSACTIONAL:
        return system.order_service
    environment = {**system.order_service.environment, RELAY: "notified" if delivery is Delivery.OUTBOX_NOTIFIED else "polled"}
    command = [sys.executable, "-m", "lab.benchmarks.orders.outbox_service"]
    return processes.add("outbox_service", command, environment=environment, is_ready=answers(f"{system.order_url}/healthz"))


def _databases(kind: str) -> Mapping[str, str]:
    if kind == "SQLite":
        return {}
    orders, credits = new_database(), new_database()
    if orders is None or credits is None:
        raise NoPostgresql("PostgreSQL is not installed: apt-get install postgresql, or omit PostgreSQL from --databases")
    return {"ORDER_DATABASE_URL": orders, "CREDIT_DATABASE_URL": credits}
