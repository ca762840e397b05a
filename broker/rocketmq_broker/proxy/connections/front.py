"""The port for clients: it looks at a connection's first bytes, takes TLS off, and passes the rest to gRPC's own port.

gRPC's library tells a server neither of a peer that speaks another protocol, nor reads a renewed certificate, nor takes
connections with and without TLS on one port. The broker's other port does all of that, and here the same parts do it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Final, cast

from rocketmq_broker.message import record
from rocketmq_broker.remoting.complaints import Complaints
from rocketmq_broker.remoting.network import Listener, TcpNetwork
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.remoting.tls import Opening, ServerContexts, TlsMode

logger = logging.getLogger(__name__)

_HTTP2: Final = b"PRI "
"""The first bytes of each connection of HTTP/2."""
_BACKLOG: Final = 1024
_BEGINS_WITHIN_S: Final = 10.0
_BEHIND: Final = "127.0.0.1"


class Front:
    """The port and its connections. gRPC sees them come from its own machine; `address_of` returns where they came from."""

    def __init__(self, contexts: ServerContexts, most_connections: int) -> None:
        self._contexts = contexts
        self._most_connections = most_connections
        self._complaints = Complaints()
        self._tasks = Tasks()
        self._listener: Listener | None = None
        self._port_behind = 0
        self._addresses: dict[int, tuple[str, int]] = {}
        self.connections: set[FrontConnection] = set()
        """The open ones."""

    @property
    def port(self) -> int:
        """Returns the port for clients, once bound."""
        assert self._listener is not None
        return self._listener.port

    async def bind(self, host: str, port: int) -> None:
        """Binds the port, but does not listen yet. Raises OSError."""
        self._listener = await TcpNetwork().bind(self._new_connection, host, port, _BACKLOG)

    def start(self, port_behind: int) -> None:
        """Takes connections when it returns, and passes them to gRPC's port. Raises OSError."""
        assert self._listener is not None
        self._port_behind = port_behind
        self._listener.start()

    def stop_listening(self) -> None:
        """Takes no more connections; open ones stay."""
        if self._listener is not None:
            self._listener.stop()

    async def stop(self) -> None:
        """Stops listening and closes all connections."""
        self.stop_listening()
        await self._tasks.stop()
        for connection in list(self.connections):
            connection.abort()

    def address_of(self, peer: str) -> tuple[str, int] | None:
        """Returns the address of the client whom gRPC calls `peer`; None for one that did not come by this port."""
        port = peer.rpartition(":")[2]
        return self._addresses.get(int(port)) if port.isdecimal() else None

    def complain(self, peer: str, cause: str, reason: str) -> None:
        """Logs that a connection is closed, and why; once a minute for a machine and a cause."""
        if self._complaints.is_due(peer.rpartition(":")[0], cause, asyncio.get_running_loop().time()):
            logger.warning("closing the connection of %s: %s", peer, reason)

    def has_room(self) -> bool:
        """Returns whether one more connection may be open."""
        return len(self.connections) < self._most_connections

    def pass_on(self, connection: FrontConnection) -> None:
        """Connects the client's connection to gRPC's port."""
        self._tasks.start("a connection to gRPC", self._pass_on(connection))

    async def _pass_on(self, connection: FrontConnection) -> None:
        loop = asyncio.get_running_loop()
        transport, behind = await loop.create_connection(lambda: _Behind(connection), _BEHIND, self._port_behind)
        port = transport.get_extra_info("sockname")[1]
        self._addresses[port] = connection.address
        behind.on_lost = partial(self._addresses.pop, port, None)
        connection.connected(transport)

    def _new_connection(self) -> asyncio.Protocol:
        connection = FrontConnection(self)
        if self._contexts.mode is TlsMode.DISABLED:
            return connection
        return Opening(connection, self._contexts, self._tasks, self._complaints)


class FrontConnection(asyncio.Protocol):
    """A client's connection. Nothing is read from a side while the other does not take it."""

    def __init__(self, front: Front) -> None:
        self.peer = "?"
        self.address = ("", 0)
        self._front = front
        self._transport: asyncio.Transport | None = None
        self._behind: asyncio.Transport | None = None
        self._beginning = b""
        self._is_begun = False
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Waits for the first bytes."""
        self._transport = cast(asyncio.Transport, transport)
        address = transport.get_extra_info("peername")
        if address is None or not self._front.has_room():
            self._transport.abort()
            return
        self.address = address[:2]
        self.peer = record.host_text(record.host_bytes(*self.address))
        self._front.connections.add(self)
        self._timer = asyncio.get_running_loop().call_later(_BEGINS_WITHIN_S, self._is_late)

    def secured_by(self, transport: asyncio.Transport) -> None:
        """Replaces the transport by one that adds TLS."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Passes the bytes on; the first ones only where they begin HTTP/2."""
        if self._behind is not None:
            self._behind.write(data)
            return
        self._beginning += data
        if self._is_begun or self._transport is None:
            return
        if not _HTTP2.startswith(self._beginning[: len(_HTTP2)]):
            reason = "it speaks no gRPC: this is grpcServerPort. Clients of RocketMQ 4 come by the name server, or by listenPort"
            self._front.complain(self.peer, "no HTTP/2", reason)
            self._transport.abort()
        elif len(self._beginning) >= len(_HTTP2):
            self._is_begun = True
            self._transport.pause_reading()
            self._front.pass_on(self)

    def connected(self, behind: asyncio.Transport) -> None:
        """Passes on what came until now, and all that follows."""
        if self._transport is None:
            behind.abort()
            return
        self._behind = behind
        behind.write(self._beginning)
        self._beginning = b""
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def answer(self, data: bytes) -> None:
        """Sends the client what gRPC answers."""
        if self._transport is not None:
            self._transport.write(data)

    def eof_received(self) -> bool | None:
        """Lets asyncio close the connection."""
        return None

    def connection_lost(self, error: Exception | None) -> None:
        """Ends the connection to gRPC."""
        self._front.connections.discard(self)
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
        if self._behind is not None:
            self._behind.abort()

    def pause_writing(self) -> None:
        """Reads no more answers until the client has taken those it has."""
        if self._behind is not None and not self._behind.is_closing():
            self._behind.pause_reading()

    def resume_writing(self) -> None:
        """Reads answers again."""
        if self._behind is not None and not self._behind.is_closing():
            self._behind.resume_reading()

    def pause_reading(self) -> None:
        """Reads nothing from the client until gRPC has taken what it has."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Reads from the client again."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self) -> None:
        """Closes the connection after its output."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Closes the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def _is_late(self) -> None:
        if not self._is_begun:
            self._front.complain(self.peer, "silence", f"after {_BEGINS_WITHIN_S:.0f} s it has not begun to speak gRPC")
            self.abort()


class _Behind(asyncio.Protocol):
    """The connection to gRPC for one client."""

    def __init__(self, client: FrontConnection) -> None:
        self._client = client
        self.on_lost: Callable[[], object] = lambda: None

    def data_received(self, data: bytes) -> None:
        self._client.answer(data)

    def connection_lost(self, error: Exception | None) -> None:
        self.on_lost()
        self._client.close()

    def pause_writing(self) -> None:
        self._client.pause_reading()

    def resume_writing(self) -> None:
        self._client.resume_reading()
