"""A TCP relay that forwards to a broker and can drop frames."""

import asyncio
import contextlib
import ssl
import struct
from collections.abc import Callable
from typing import Final, TypeVar

from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.remoting.network import TcpNetwork
from tutorials.race.brokers.losses import Line, Losses

P = TypeVar("P", bound=asyncio.Protocol)

_HOST: Final = "127.0.0.1"
_LENGTH: Final = struct.Struct(">i")


class Detour:
    """A TCP relay to a local broker. If the client or the broker closes a connection, the relay closes the other side."""

    def __init__(self, broker_port: int, losses: Losses) -> None:
        """Creates a stopped relay.

        `broker_port` is the port of the broker on 127.0.0.1; `losses` decides which frames are dropped.
        """
        self.losses = losses
        self._broker_port = broker_port
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Starts the relay on a free port."""
        self._server = await asyncio.start_server(self._relay, _HOST, 0)
        self.port: int = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Closes all connections and stops listening."""
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _relay(self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._relay_until_one_ends(from_client, to_client)
        finally:
            to_client.close()
            self._connections.discard(task)

    async def _relay_until_one_ends(self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        from_broker, to_broker = await asyncio.open_connection(_HOST, self._broker_port)
        line = Line(self.losses)
        ways = [
            asyncio.create_task(_pass_on(from_client, to_broker, line.reaches_broker)),
            asyncio.create_task(_pass_on(from_broker, to_client, line.reaches_client)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            to_broker.close()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)


class DetourNetwork(TcpNetwork):
    """A network that routes connections to one broker through the relay, and connects directly to all other ports."""

    def __init__(self, broker_port: int, detour: Detour) -> None:
        """Creates the network. `detour` is the relay to the broker at `broker_port`."""
        self._broker_port = broker_port
        self._detour = detour

    async def connect(self, new_protocol: Callable[[], P], host: str, port: int, tls: ssl.SSLContext | None) -> P:
        """Opens a connection, through the relay if `port` is the broker's port."""
        return await super().connect(new_protocol, host, self._detour.port if port == self._broker_port else port, tls)


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, arrives: Callable[[RemotingCommand], bool]
) -> None:
    """Forwards the frames for which `arrives` returns True, until the connection ends."""
    while True:
        length = await reader.readexactly(_LENGTH.size)
        frame = length + await reader.readexactly(_LENGTH.unpack(length)[0])
        [command] = FrameDecoder().feed(frame)
        if arrives(command):
            writer.write(frame)
            await writer.drain()
