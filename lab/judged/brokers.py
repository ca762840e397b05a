"""The broker of a run: ours, or Apache RocketMQ. Both sync each message to disk, and check back every second."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from demo.ports import free_ports
from demo.processes import Process, Processes
from demo.system import QUICK_CHECKS, System
from tests.foreign.apache.cluster import Member, apache_rocketmq


class JudgedBroker(StrEnum):
    """The broker to judge."""

    OURS = "ours"
    APACHE = "apache"


_START_TIMEOUT_S = 300


@dataclass(frozen=True, slots=True)
class Victim:
    """A process that can be killed, stopped and started again."""

    pid: Callable[[], int]
    kill: Callable[[], None]
    start: Callable[[], None]

    @classmethod
    def of(cls, service: Process) -> "Victim":
        """Returns the victim for a service. Its start does not wait until it is ready, because the broker may be down."""
        return cls(lambda: service.pid, service.kill, service.spawn)


@contextmanager
def started_system(processes: Processes, home: Path, broker: JudgedBroker) -> Iterator[tuple[System, Victim]]:
    """Starts the shop on the broker. Yields the shop, and the broker's process."""
    if broker is JudgedBroker.OURS:
        system = System(processes, home)
        system.start()
        broker_process = system.broker
        yield system, Victim(lambda: broker_process.pid, broker_process.kill, lambda: broker_process.start(_START_TIMEOUT_S))
        return
    namesrv_port, broker_port = free_ports(2)
    settings = {
        "NAMESRV_PORT": str(namesrv_port),
        "BROKER_PORT": str(broker_port),
        "FLUSH": "SYNC_FLUSH",
        "HEAP": "512m",
        "TRANSACTION_TIMEOUT_MS": QUICK_CHECKS["transactionTimeOut"],
        "CHECK_INTERVAL_MS": QUICK_CHECKS["transactionCheckInterval"],
        "CHECK_MAX": QUICK_CHECKS["transactionCheckMax"],
    }
    with apache_rocketmq(home / "apache", settings=settings) as namesrv_addr:
        system = System(processes, home, namesrv_addr=namesrv_addr)
        system.start_services()
        member = Member(home / "apache", settings)
        yield system, Victim(member.pid, member.kill, member.restart)
