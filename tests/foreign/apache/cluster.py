"""Starts and stops a real Apache RocketMQ for tests, one broker or a cluster, with the script `peer` in this folder."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
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
    False, and the registration is not awaited. With the setting `JOIN` the broker joins the cluster of these name servers.
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
        if accepts_plain and environment["BROKER_PORT"] != "none":
            with ThreadPoolExecutor(1) as thread:  # the test may have an event loop of its own
                thread.submit(asyncio.run, until_registered(namesrv_addr)).result()
        yield namesrv_addr
    finally:
        subprocess.run([PEER, "stop" if is_store_needed else "drop", home], check=True, timeout=STOP_SECONDS)


@dataclass(frozen=True, slots=True)
class Member:
    """A broker or a name server of a cluster."""

    home: Path
    environment: Mapping[str, str]
    part: str = "broker"

    @property
    def address(self) -> str:
        """The address of a broker."""
        return f"127.0.0.1:{self.environment['BROKER_PORT']}"

    def pid(self) -> int:
        """Returns the id of the process."""
        return int((self.home / f"{self.part}.pid").read_text())

    def kill(self) -> None:
        """Kills the process with SIGKILL."""
        subprocess.run([PEER, "kill", self.home, self.part], check=True, timeout=STOP_SECONDS)

    def restart(self) -> None:
        """Starts the killed process again on its store. Returns before a broker has registered."""
        environment = {**os.environ, "JAVA_OPTIONS": SHORT_LIVED, **self.environment}
        subprocess.run([PEER, "restart", self.home, self.part], env=environment, check=True, timeout=START_SECONDS)

    @contextmanager
    def halted(self) -> Iterator[None]:
        """Stops the process with SIGSTOP during the block: it keeps its connections, and does nothing. It may be killed there."""
        pid = self.pid()
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Masters, each with a slave, and one name server or several."""

    namesrv_addr: str
    masters: Mapping[str, Member]
    """Masters by broker name."""
    slaves: Mapping[str, Member]
    """Slaves by the name of their master, which is theirs as well."""
    controllers: Mapping[str, Member]
    """Name servers that run a controller, by the controller's address."""


@contextmanager
def apache_cluster(
    home: Path, names: tuple[str, ...], settings: Mapping[str, str], *, version: str = "4.9.7", controllers: int = 0
) -> Iterator[Cluster]:
    """Runs a cluster with a master (SYNC_MASTER) and a slave of each name. All processes are killed at the end.

    With controllers, each in a name server of its own, these are the first roles: the first broker that starts is elected.
    """
    members: dict[str, dict[str, Member]] = {"SYNC_MASTER": {}, "SLAVE": {}}
    ports = [str(port) for port in free_ports(2 * (controllers or 1))]
    namesrv_ports, controller_ports = ports[::2], ports[1::2] if controllers else []
    namesrv_addr = ";".join(f"127.0.0.1:{port}" for port in namesrv_ports)
    common = {**settings, "HEAP": "256m", "CONTROLLERS": " ".join(controller_ports)}

    def started(name: str, part: str, own: Mapping[str, str]) -> Member:
        environment = {**common, **own}
        stack.enter_context(apache_rocketmq(home / name, version=version, settings=environment))
        return Member(home / name, environment, part)

    with ExitStack() as stack:
        namesrvs = [
            started(f"namesrv-{index}", "namesrv", {"NAMESRV_PORT": port, "BROKER_PORT": "none", "CONTROLLER": str(index)})
            for index, port in enumerate(namesrv_ports)
        ]
        common["JOIN"] = namesrv_addr
        for broker_id, (role, of_role) in enumerate(members.items()):
            for name in names:
                own = {"ROLE": role, "BROKER_ID": str(broker_id), "BROKER_NAME": name, "BROKER_PORT": str(free_ports(1)[0])}
                of_role[name] = started(f"{name}-{broker_id}", "broker", own)
        addresses = (f"127.0.0.1:{port}" for port in controller_ports)
        masters, slaves = members.values()
        yield Cluster(namesrv_addr, masters, slaves, dict(zip(addresses, namesrvs, strict=False)))
