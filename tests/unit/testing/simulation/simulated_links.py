"""Processes on a simulated network, in virtual time, without the rest of a simulated world."""

import asyncio
import functools
import random
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rocketmq_broker.remoting.network import Listener
from rocketmq_broker.testing.simulation.history import History
from rocketmq_broker.testing.simulation.loop import SimulatedLoop
from rocketmq_broker.testing.simulation.network import SimulatedNetwork
from rocketmq_broker.testing.simulation.process import SimulatedProcess, WallClock

T = TypeVar("T")
PORT = 10911


class End(asyncio.Protocol):
    """One end of a connection, with its recorded events."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self.data = b""
        self.reads: list[bytes] = []
        self.events: list[str] = []
        self.ended_s: float | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data
        self.reads.append(data)

    def eof_received(self) -> None:
        self.events.append("end")

    def pause_writing(self) -> None:
        self.events.append("pause")

    def resume_writing(self) -> None:
        self.events.append("resume")

    def connection_lost(self, error: Exception | None) -> None:
        self.events.append(f"lost {type(error).__name__}" if error else "closed")
        self.ended_s = asyncio.get_running_loop().time()


@dataclass
class Links:
    """A client and a server on one network."""

    network: SimulatedNetwork
    history: History
    longest_s: float
    """No delivery takes longer."""
    client: SimulatedProcess = field(init=False)
    server: SimulatedProcess = field(init=False)
    listener: Listener | None = None
    accepted: list[End] = field(default_factory=list)
    starts: int = 0

    def __post_init__(self) -> None:
        self.client = self.start("client", "10.0.0.1")
        self.server = self.start("server", "10.0.0.2")

    def start(self, name: str, address: str) -> SimulatedProcess:
        """Starts a process."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        self.starts += 1
        return SimulatedProcess(
            name, address, loop=loop, history=self.history, seed=1, number=self.starts, clock=WallClock(loop, 0),
            network=self.network.at,
        )  # fmt: skip

    def kinds(self) -> list[str]:
        """Returns the kinds of all recorded events."""
        return [str(happening.kind) for happening in self.history.happenings]

    async def listen(self) -> None:
        """Starts the server's port."""
        self.listener = await self.network.at(self.server).bind(self._accept, "0.0.0.0", PORT, 10)
        self.listener.start()

    async def connect(self, host: str = "10.0.0.2") -> End:
        """Connects the client."""
        return await self.network.at(self.client).connect(End, host, PORT, None)

    async def pair(self) -> tuple[End, End]:
        """Connects client and server. Returns both ends of the connection."""
        if self.listener is None:
            await self.listen()
        client = await self.connect()
        await asyncio.sleep(self.longest_s)
        return client, self.accepted[-1]

    def kill(self, process: SimulatedProcess, *, is_power: bool = False) -> None:
        """Ends a process as kill -9 or a power failure does."""
        self.network.died(process, is_power=is_power)
        process.kill()

    def freeze(self, process: SimulatedProcess) -> None:
        """Stops a process."""
        self.network.freeze(process.name)
        process.freeze()

    def thaw(self, process: SimulatedProcess) -> None:
        """Resumes a stopped process."""
        process.thaw()
        self.network.thaw(process.name)

    def restart_server(self) -> None:
        """Creates a new process with the server's name and address."""
        self.server, self.listener = self.start("server", "10.0.0.2"), None

    def _accept(self) -> End:
        self.accepted.append(End())
        return self.accepted[-1]


def links(seed: int = 1, latency_s: tuple[float, float] = (0.0002, 0.003)) -> Links:
    """Returns a network for one test. Call it on its event loop."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    history = History(loop.elapsed_ns)
    network = SimulatedNetwork(history, lambda name: random.Random(f"{seed}/{name}"), latency_s=latency_s)
    return Links(network, history, latency_s[1] * 2)


def played(story: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine in virtual time. Returns its result."""
    loop = SimulatedLoop()
    try:
        return loop.run_until_complete(story)
    finally:
        loop.close()


def in_virtual_time(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Wraps a coroutine function as a test that runs in virtual time."""

    @functools.wraps(test)
    def run(*args: Any, **named: Any) -> None:
        played(test(*args, **named))

    return run


async def seconds_of(work: Awaitable[object], error: type[BaseException] | None = None) -> float:
    """Returns how many seconds the work takes. If `error` is given, the work must raise it."""
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    try:
        await work
    except BaseException as raised:
        if error is None or type(raised) is not error:
            raise
    else:
        assert error is None, f"it did not end in {error}"
    return loop.time() - began_s
