"""Runs Apache's broker or this project's broker on the same store and ports."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from demo.ports import free_ports
from demo.processes import Processes
from demo.system import add_broker
from tests.foreign.apache.cluster import Member, apache_rocketmq

APACHES_SEGMENT_SIZE = 1 << 30
CHECK_INTERVAL_MS = 1000
CHECK_MAX = 1000
"""Nothing is given up while a test looks around, however slow the machine."""


@dataclass(frozen=True, slots=True)
class Running:
    """A running broker."""

    namesrv_addr: str
    broker_addr: str
    kill: Callable[[], None]
    """SIGKILL to the broker."""


class Place:
    """A store, and the ports of the broker that uses it."""

    def __init__(self, home: Path, processes: Processes) -> None:
        self.store = home / "store"
        self._home = home
        self._processes = processes
        self._namesrv_port, self._broker_port = free_ports(2)
        self._stays = 0

    def serve(self, owner: str, *, version: str = "4.9.7", is_last: bool = False) -> AbstractContextManager[Running]:
        """Runs a broker on the store: `apache` in this version, or `ours`. Stops the broker at the end if it was not killed.

        With `is_last` Apache's broker is killed, because its store is not needed afterwards.
        """
        self._stays += 1
        home = self._home / f"{owner}-{self._stays}"
        return self._ours(home) if owner == "ours" else self._apache(home, version, is_last=is_last)

    @contextmanager
    def _apache(self, home: Path, version: str, *, is_last: bool) -> Iterator[Running]:
        settings = {
            "STORE": str(self.store),
            "NAMESRV_PORT": str(self._namesrv_port),
            "BROKER_PORT": str(self._broker_port),
            "TRANSACTION_TIMEOUT_MS": str(CHECK_INTERVAL_MS),
            "CHECK_INTERVAL_MS": str(CHECK_INTERVAL_MS),
            "CHECK_MAX": str(CHECK_MAX),
        }
        with apache_rocketmq(home, version=version, settings=settings, is_store_needed=not is_last):
            yield self._running(Member(home, settings).kill)

    @contextmanager
    def _ours(self, home: Path) -> Iterator[Running]:
        settings = {
            "storePathRootDir": str(self.store),
            "namesrvListenPort": str(self._namesrv_port),
            "listenPort": str(self._broker_port),
            "transactionTimeOut": str(CHECK_INTERVAL_MS),
            "transactionCheckInterval": str(CHECK_INTERVAL_MS),
            "transactionCheckMax": str(CHECK_MAX),
            "mapedFileSizeCommitLog": str(APACHES_SEGMENT_SIZE),
        }
        broker = add_broker(self._processes, home, settings, name=home.name)
        broker.start()
        try:
            yield self._running(broker.kill)
        finally:
            broker.stop()

    def _running(self, kill: Callable[[], None]) -> Running:
        return Running(f"127.0.0.1:{self._namesrv_port}", f"127.0.0.1:{self._broker_port}", kill)
