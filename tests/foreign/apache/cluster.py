"""Starts and stops a real Apache RocketMQ for tests, one broker or a cluster, with the script `peer` in this folder."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from demo.ports import free_ports
from tutorials.race.brokers.apache import until_registered

PEER = Path(__file__).with_name("peer")
START_SECONDS = 600
"""The first start downloads the jars."""
STOP_SECONDS = 120
SHORT_LIVED = "-XX:TieredStopAtLevel=1"
"""The JVMs are over before a thorough compilation would pay."""


@contextmanager
def apache_rocketmq(
    home: Path,
    *,
    version: str = "4.9.7",
    settings: Mapping[str, str] | None = None,
    is_store_needed: bool = False,
    accepts_plain: bool = True,
) -> Iterator[str]:
    """Runs a name server and a registered broker with their data in `home`. Yields the name server's address.

    `settings` are the environment variables that `peer` lists. Both processes are killed at the end. If the store is needed
    afterwards, the broker is stopped properly, which takes ten seconds. If the name server accepts only TLS, `accepts_plain` is
    False, and the registration is not awaited. With the setting `JOIN` the broker joins the cluster of that name server.
    """
    namesrv_port, broker_port = free_ports(2)
    environment = {
        **os.environ,
        "NAMESRV_PORT": str(namesrv_port),
        "BROKER_PORT": str(broker_port),
        "HEAP": "512m",
        **(settings or {}),
    }
    environment["JAVA_OPTIONS"] = f"{SHORT_LIVED} {environment.get('JAVA_OPTIONS', '')}"
    try:
        subprocess.run([PEER, "start", home, version], env=environment, check=True, timeout=START_SECONDS)
        namesrv_addr = environment.get("JOIN") or f"127.0.0.1:{environment['NAMESRV_PORT']}"
        if accepts_plain:
            with ThreadPoolExecutor(1) as thread:  # the test may have an event loop of its own
                thread.submit(asyncio.run, until_registered(namesrv_addr)).result()
        yield namesrv_addr
    finally:
        subprocess.run([PEER, "stop" if is_store_needed else "drop", home], check=True, timeout=STOP_SECONDS)


@dataclass(frozen=True, slots=True)
class Member:
    """A broker of a cluster."""

    home: Path
    environment: Mapping[str, str]

    @property
    def address(self) -> str:
        """The address of the broker."""
        return f"127.0.0.1:{self.environment['BROKER_PORT']}"

    def pid(self) -> int:
        """Returns the id of the broker's process."""
        return int((self.home / "broker.pid").read_text())

    def kill(self) -> None:
        """Kills the broker with SIGKILL."""
        subprocess.run([PEER, "kill", self.home], check=True, timeout=STOP_SECONDS)

    def restart(self) -> None:
        """Starts the killed broker again on its store. Returns before the broker has registered."""
        environment = {**os.environ, "JAVA_OPTIONS": SHORT_LIVED, **self.environment}
        subprocess.run([PEER, "restart", self.home], env=environment, check=True, timeout=START_SECONDS)

    @contextmanager
    def halted(self) -> Iterator[None]:
        """Stops the broker with SIGSTOP during the block: it keeps its connections, and does nothing."""
        pid = self.pid()
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Two masters, each with a slave, and a name server."""

    namesrv_addr: str
    masters: Mapping[str, Member]
    """Masters by broker name."""
    slaves: Mapping[str, Member]
    """Slaves by the name of their master, which is theirs as well."""


@contextmanager
def apache_cluster(
    home: Path, names: tuple[str, ...], settings: Mapping[str, str], *, version: str = "4.9.7"
) -> Iterator[Cluster]:
    """Runs a cluster with a master (SYNC_MASTER) and a slave of each name. All processes are killed at the end.

    With the setting CONTROLLER_PORT these are the first roles, because the first broker that starts is elected.
    """
    members: dict[str, dict[str, Member]] = {"SYNC_MASTER": {}, "SLAVE": {}}
    common = {**settings, "HEAP": "256m", "NAMESRV_PORT": str(free_ports(1)[0])}
    with ExitStack() as stack:
        for broker_id, (role, of_role) in enumerate(members.items()):
            for name in names:
                own = {
                    **common, "ROLE": role, "BROKER_ID": str(broker_id), "BROKER_NAME": name, "BROKER_PORT": str(free_ports(1)[0])
                }  # fmt: skip
                folder = home / f"{name}-{broker_id}"
                common["JOIN"] = stack.enter_context(apache_rocketmq(folder, version=version, settings=own))
                of_role[name] = Member(folder, own)
        yield Cluster(common["JOIN"], *members.values())
