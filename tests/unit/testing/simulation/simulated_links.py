"""Processes on a simulated network, in virtual time, without the rest of a simulated world."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import hashlib
import random
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rocketmq_broker.remoting.network import Listener
from rocketmq_broker.testing.simulation.network import SimulatedNetwork
from rocketmq_broker.testing.virtual_time import VirtualTime

T = TypeVar("T")
PORT = 10911


@dataclass(eq=False)
class Process:
    name: str
    address: str
    context: contextvars.Context = field(default_factory=contextvars.copy_context)


class Record:
    """Keeps the notes, and digests everything."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, str, str]] = []
        self._hash = hashlib.sha256()

    def note(self, process: str, kind: str, text: str, keys: tuple[str, ...] = ()) -> None:
        self.notes.append((process, str(kind), text))
        self.mix(process, kind, text, *keys)

    def mix(self, *parts: str | int | bytes) -> None:
        self._hash.update(repr((asyncio.get_running_loop().time(), *parts)).encode())

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def kinds(self) -> list[str]:
        return [kind for _, kind, _ in self.notes]


class End(asyncio.Protocol):
    """Notes what happens to it."""

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
    record: Record
    longest_s: float
    """No delivery takes longer."""
    client: Process = field(default_factory=lambda: Process("client", "10.0.0.1"))
    server: Process = field(default_factory=lambda: Process("server", "10.0.0.2"))
    listener: Listener | None = None
    accepted: list[End] = field(default_factory=list)

    async def listen(self) -> None:
        """Starts the server's port."""
        self.listener = await self.network.at(self.server).bind(self._accept, "0.0.0.0", PORT, 10)
        self.listener.start()

    async def connect(self, host: str = "10.0.0.2") -> End:
        """Connects the client."""
        return await self.network.at(self.client).connect(End, host, PORT, None)

    async def pair(self) -> tuple[End, End]:
        """Connects both, and returns the ends of client and server."""
        if self.listener is None:
            await self.listen()
        client = await self.connect()
        await asyncio.sleep(self.longest_s)
        return client, self.accepted[-1]

    def restart_server(self) -> None:
        """Makes another process of the server's name and address."""
        self.server, self.listener = Process("server", "10.0.0.2"), None

    def _accept(self) -> End:
        self.accepted.append(End())
        return self.accepted[-1]


def links(seed: int = 1, latency_s: tuple[float, float] = (0.0002, 0.003)) -> Links:
    """Returns a network for one test. Call it on its event loop."""
    record = Record()
    network = SimulatedNetwork(record, lambda name: random.Random(f"{seed}/{name}"), latency_s=latency_s)
    made = Links(network, record, latency_s[1] * 2)
    network.at(made.client), network.at(made.server)
    return made


def played(story: Coroutine[Any, Any, T]) -> T:
    """Runs a story in virtual time."""
    loop = VirtualTime(0).new_loop()
    try:
        return loop.run_until_complete(story)
    finally:
        loop.close()


def in_virtual_time(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Makes a test of a coroutine: it runs in virtual time."""

    @functools.wraps(test)
    def run(*args: Any, **named: Any) -> None:
        played(test(*args, **named))

    return run


async def seconds_of(work: Awaitable[object], error: type[BaseException] | None = None) -> float:
    """Returns how long the work takes; it must end in the error, if one is given."""
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
