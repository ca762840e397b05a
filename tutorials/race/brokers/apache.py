"""Runs Apache's broker in its own processes and in real time, behind a TCP relay that can drop frames."""

import asyncio
import os
import shutil
from contextlib import ExitStack
from mmap import ACCESS_READ, mmap
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Final, Self

from demo.ports import free_ports
from demo.processes import Process, Processes, ProcessFailed
from rocketmq_broker.admin.broker_requests.brokers import masters_of
from rocketmq_broker.admin.broker_requests.figures import consume_stats
from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.admin.errors import AdminError
from rocketmq_broker.client.instance.name_servers import NameServers, name_server_addresses
from rocketmq_broker.message.record import records_of
from rocketmq_broker.message.topics import HALF_TOPIC, TRANSACTION_CONSUMER_GROUP
from rocketmq_broker.remoting.client import RemotingClient
from rocketmq_broker.remoting.network import on_network
from tutorials.race.brokers.detour import Detour, DetourNetwork
from tutorials.race.brokers.losses import Losses
from tutorials.race.brokers.raced_broker import BrokerCannotRun, RacedBroker
from tutorials.race.order import CONSUMER_GROUP, TOPIC

PEER: Final = Path(__file__).parents[3] / "tests" / "foreign" / "apache" / "peer"
START_TIMEOUT_S: Final = 600.0
"""The maximum duration of a start in seconds. It is long, because the first start downloads Apache's jars."""
LEAST_REST_S: Final = 2.0
MAX_REST_S: Final = 300.0
LOOK_EVERY_S: Final = 0.5
_SETTINGS: Final = {
    "HEAP": "512m",
    "FLUSH": "SYNC_FLUSH",
    "TRANSACTION_TIMEOUT_MS": "1000",
    "CHECK_INTERVAL_MS": "2000",
    "CHECK_MAX": "450",
}
"""The broker's settings. Transactions time out early and check-backs are frequent, because the runs take real time.

With these settings the broker discards an undecided transaction after 15 minutes, as it does by default.
"""


async def until_registered(namesrv_addr: str) -> None:
    """Waits until a broker has registered with the name server. Raises TimeoutError.

    RocketMQ 5 reports its start earlier. It registers with the name servers to which it has a connection by then, which may be
    none of them, and tries again ten seconds later. Until then a client's first send fails with "No route info of this topic".
    """
    remoting = RemotingClient()
    name_servers = NameServers(name_server_addresses(namesrv_addr), remoting)
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            while not masters_of(await name_servers.cluster_info()):  # noqa: ASYNC110 (it happens in another process)
                await asyncio.sleep(LOOK_EVERY_S)
    finally:
        await remoting.close()


class ApacheBroker(RacedBroker):
    """Apache RocketMQ, started by tests/foreign/apache/peer. The name server and the broker each run in their own JVM."""

    version: ClassVar = "4.9.7"
    slow_commit_s: ClassVar = (0.7, 4.7)
    """The shortest and the longest duration of a slow local transaction in seconds.

    Both values are a thirtieth of OwnBroker's, because the check interval is a thirtieth of the default.
    """

    def __init__(self, seed: int, folder: Path) -> None:
        """Prepares the broker's folder and ports. `seed` has no effect."""
        self._home = folder / "apache"
        self._namesrv_port, self._port = free_ports(2)
        self.namesrv_addr = f"127.0.0.1:{self._namesrv_port}"
        self._detour = Detour(self._port, Losses())
        self._processes = Processes(folder / "logs")
        self._entered = ExitStack()
        self._is_running = False

    async def __aenter__(self) -> Self:
        """Starts the name server, the broker and the relay. Raises BrokerCannotRun."""
        if (missing := missing_for_apache(self.version)) is not None:
            raise BrokerCannotRun(missing)
        self._entered.enter_context(self._processes)
        try:
            ports = {"NAMESRV_PORT": str(self._namesrv_port), "BROKER_PORT": str(self._port)}
            await self._run(self._peer("start", self.version, environment={**_SETTINGS, **ports}))
            self._restarting = self._peer("restart", environment=_SETTINGS)
            await until_registered(self.namesrv_addr)
            await self._detour.start()
            self._entered.enter_context(on_network(DetourNetwork(self._port, self._detour)))
        except BaseException:
            self._entered.close()
            raise
        self._began_s = asyncio.get_running_loop().time()
        self._is_running = True
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stops the relay and kills the broker."""
        await self._detour.stop()
        self._entered.close()

    @property
    def is_running(self) -> bool:
        """True while the broker is running."""
        return self._is_running

    @property
    def now_s(self) -> float:
        """The real time since the broker's start, in seconds."""
        return asyncio.get_running_loop().time() - self._began_s

    async def pause(self, seconds: float) -> None:
        """Waits for `seconds` of real time."""
        await asyncio.sleep(seconds)

    async def kill(self) -> None:
        """Kills the broker with SIGKILL. The name server keeps running."""
        self._is_running = False
        await self._run(self._peer("kill"))

    async def restart(self) -> None:
        """Restarts the killed broker on its store, and waits until clients can find it. Raises BrokerCannotRun."""
        await self._run(self._restarting)
        await until_registered(self.namesrv_addr)
        self._is_running = True

    def lose_answer_about(self, order_id: str) -> None:
        """Drops the response to the next message of this order at the relay."""
        self._detour.losses.answers_to_lose.add(order_id)

    def lose_next_decision(self) -> None:
        """Drops the next COMMIT or ROLLBACK at the relay."""
        self._detour.losses.decisions_to_lose += 1

    async def come_to_rest(self) -> None:
        """Waits until the broker has settled all half messages and the consumers have consumed all messages.

        Gives up after MAX_REST_S seconds.
        """
        remoting = RemotingClient()
        broker = BrokerRequests(remoting, f"127.0.0.1:{self._port}")
        end_s = self.now_s + MAX_REST_S
        try:
            await asyncio.sleep(LEAST_REST_S)
            while self.now_s < end_s and not await _is_at_rest(broker):  # noqa: ASYNC110 (it happens in another process)
                await asyncio.sleep(LOOK_EVERY_S)
        finally:
            await remoting.close()

    def count_records(self) -> int:
        """Returns the number of records in the first segment of the commit log."""
        segment = self._home / "store" / "commitlog" / f"{0:020}"
        with segment.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as commit_log:
            return sum(1 for _ in records_of(commit_log))

    def _peer(self, verb: str, *more: str, environment: dict[str, str] | None = None) -> Process:
        return self._processes.add(f"peer-{verb}", [str(PEER), verb, str(self._home), *more], environment=environment)

    async def _run(self, peer: Process) -> None:
        """Runs a command of the program `peer` and waits until it ends. Raises BrokerCannotRun."""
        peer.spawn()
        try:
            code = await asyncio.to_thread(peer.wait, START_TIMEOUT_S)
        except ProcessFailed as error:
            raise BrokerCannotRun(str(error)) from None
        if code != 0:
            raise BrokerCannotRun(f"Apache RocketMQ {self.version} did not start:\n{peer.output()}")


class ApacheFiveBroker(ApacheBroker):
    """RocketMQ 5.3.3, which writes op messages in batches, up to 6 s late.

    RocketMQ 5 before 5.4.0 also sends check-backs about decided transactions. A second COMMIT then delivers the message again
    (apache/rocketmq issue 10199; TransactionalMessageServiceImpl).
    """

    version: ClassVar = "5.3.3"


def missing_for_apache(version: str) -> str | None:
    """Returns a message that names the software missing for Apache's broker and how to install it, or None."""
    if shutil.which("java") is None:
        return "Apache's broker needs Java 17, but java is not on PATH: apt-get install openjdk-17-jre-headless"
    jars = Path(os.environ.get("JARS") or Path.home() / ".cache" / "rocketmq-peer") / version
    if not jars.is_dir() and shutil.which("mvn") is None:
        return f"Apache's jars are not in {jars}, and mvn is not on PATH to download them: apt-get install maven"
    return None


async def _is_at_rest(broker: BrokerRequests) -> bool:
    """Returns True if no half message and no message is pending.

    Checks half messages first, because a decision stores its message before its op message.
    """
    return not await _lag(broker, TRANSACTION_CONSUMER_GROUP, HALF_TOPIC) and not await _lag(broker, CONSUMER_GROUP, TOPIC)


async def _lag(broker: BrokerRequests, group: str, topic: str) -> int:
    """Returns the number of messages of the topic that the group has not consumed, or 1 if the broker does not respond."""
    try:
        stats = await consume_stats(broker, group, topic)
    except AdminError:
        return 1
    return sum(max(0, queue.broker_offset - queue.consumer_offset) for queue in stats.offset_table.values())
