"""An in-memory network within one event loop, with optional sockets for outside clients.

Data arrives at the other end in the next turn of the loop. No time passes, and the order is deterministic.
"""

import asyncio
import contextvars
import errno
import socket
import ssl
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from rocketmq_broker.platform.limits import reserve_port
from rocketmq_broker.remoting.network import Listener, TcpNetwork

P = TypeVar("P", bound=asyncio.Protocol)

NewProtocol = Callable[[], asyncio.Protocol]
Tap = Callable[[asyncio.Transport], asyncio.Transport]
"""A callback that receives the server's transport of a new connection, and returns the transport for the server to use."""

_LOCAL_HOST: Final = "127.0.0.1"
_LOCAL_HOSTS: Final = frozenset({_LOCAL_HOST, "localhost", "0.0.0.0", ""})
_FIRST_PORT: Final = 20_000
_FIRST_CLIENT_PORT: Final = 50_000
_HIGH_WATER_BYTES: Final = 64 * 1024
_LOW_WATER_SHARE: Final = 4
"""The ratio of the high-water mark to the low-water mark, as in asyncio's transports. Writing resumes at the low-water mark."""


def connection_reset() -> ConnectionResetError:
    """Returns the error for a connection that the peer has reset."""
    return ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")


class MemoryNetwork:
    """The ports and connections of one event loop."""

    def __init__(self, *, is_open: bool = True, tap: Tap | None = None) -> None:
        """Creates an empty network. If `is_open`, it also listens on real ports. `tap` wraps each connection of a server."""
        self._is_open = is_open
        self._tap = tap
        self._tcp = TcpNetwork()
        self._listeners: dict[int, MemoryListener] = {}
        self._ports_used: set[int] = set()
        self._reserved: dict[int, socket.socket | None] = {}
        """The real ports of this network. No other program gets them while a server restarts."""
        self._served: dict[asyncio.Transport, None] = {}
        self._next_port = _FIRST_PORT
        self._next_client_port = _FIRST_CLIENT_PORT

    @property
    def listening_sockets(self) -> int:
        """The number of real listening sockets."""
        return sum(listener.is_listening and listener.is_real for listener in self._listeners.values())

    @property
    def clients_outside(self) -> int:
        """The number of connections from outside clients."""
        return sum(not isinstance(transport, MemoryTransport) for transport in self._served)

    async def bind(
        self, new_protocol: NewProtocol, host: str, port: int, backlog: int, *, is_exclusive: bool = False
    ) -> Listener:
        """Returns a listener for the port, in memory and, if the network is open, on a socket."""
        if port in self._listeners:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        served = self._watched(new_protocol)
        tcp = await self._tcp.bind(served, host, port, backlog, is_exclusive=is_exclusive) if self._is_open else None
        if tcp is not None:
            port = tcp.port
            if port not in self._reserved:
                self._reserved[port] = reserve_port(host, port)
        elif port == 0:
            port = self._next_port = self._next_port + 10
        self._ports_used.add(port)
        listener = self._listeners[port] = MemoryListener(port, served, tcp, lambda: self._listeners.pop(port, None))
        return listener

    async def connect(self, new_protocol: Callable[[], P], host: str, port: int, tls: ssl.SSLContext | None) -> P:
        """Connects in memory if a server of this network listens on the port and TLS is off. Otherwise uses a socket."""
        listener = self._listeners.get(port) if host in _LOCAL_HOSTS else None
        if listener is not None and listener.is_listening and tls is None:
            return self._connected(new_protocol(), listener, port)
        if not self._is_open or (listener is None and port in self._ports_used):
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        return await self._tcp.connect(new_protocol, host, port, tls)

    def served(self, protocol: asyncio.Protocol) -> asyncio.Protocol:
        """Wraps a server's protocol, to register its connection and tap its transport."""
        return ServedConnection(protocol, self._served, self._tap)

    def cut(self) -> int:
        """Aborts all connections to servers, like a network failure. Returns the number of connections."""
        served = list(self._served)
        for transport in served:
            transport.abort()
        return len(served)

    def release_ports(self) -> None:
        """Releases the real ports, after the last server has stopped."""
        for reserved in self._reserved.values():
            if reserved is not None:
                reserved.close()
        self._reserved.clear()

    def _connected(self, client: P, listener: "MemoryListener", port: int) -> P:
        self._next_client_port += 1
        client_end, server_end = _pair((_LOCAL_HOST, self._next_client_port), (_LOCAL_HOST, port), listener.context)
        server = listener.context.run(listener.new_protocol)
        server_end.set_protocol(server)
        client_end.set_protocol(client)
        listener.context.run(server.connection_made, server_end)
        client.connection_made(client_end)
        return client

    def _watched(self, new_protocol: NewProtocol) -> NewProtocol:
        return lambda: self.served(new_protocol())


class MemoryListener:
    """A listening port in memory and, optionally, on a socket."""

    def __init__(self, port: int, new_protocol: NewProtocol, tcp: Listener | None, gone: Callable[[], object]) -> None:
        self.port = port
        self.new_protocol = new_protocol
        self.is_listening = False
        self.context = contextvars.copy_context()
        """The server's context, in which its protocols run."""
        self._tcp = tcp
        self._gone = gone

    @property
    def is_real(self) -> bool:
        """Whether the port also listens on a socket."""
        return self._tcp is not None

    def start(self) -> None:
        """Starts listening."""
        if self._tcp is not None:
            self._tcp.start()
        self.is_listening = True

    def stop(self) -> None:
        """Stops listening and frees the port."""
        if self._tcp is not None:
            self._tcp.stop()
        self.is_listening = False
        self._gone()


class ServedConnection(asyncio.Protocol):
    """Passes a connection to a server's protocol, and keeps it registered until it ends."""

    def __init__(self, protocol: asyncio.Protocol, served: dict[asyncio.Transport, None], tap: Tap | None) -> None:
        """Creates the wrapper. `served` contains the open connections. `tap` wraps the transport of this connection."""
        self._protocol = protocol
        self._served = served
        self._tap = tap
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Registers the connection, and passes its transport to the protocol, tapped if needed."""
        self._transport = cast(asyncio.Transport, transport)
        self._served[self._transport] = None
        self._protocol.connection_made(self._transport if self._tap is None else self._tap(self._transport))

    def data_received(self, data: bytes) -> None:
        """Passes the bytes to the protocol."""
        self._protocol.data_received(data)

    def eof_received(self) -> bool | None:
        """Passes the peer's EOF to the protocol."""
        return self._protocol.eof_received()

    def pause_writing(self) -> None:
        """Pauses the protocol's writing."""
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """Resumes the protocol's writing."""
        self._protocol.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        """Unregisters the connection, and notifies the protocol that the connection is lost."""
        self._served.pop(self._transport, None)
        self._protocol.connection_lost(error)


def _pair(
    client: tuple[str, int], server: tuple[str, int], server_context: contextvars.Context
) -> tuple["MemoryTransport", "MemoryTransport"]:
    loop = asyncio.get_running_loop()
    client_end = MemoryTransport(loop, contextvars.copy_context(), {"sockname": client, "peername": server})
    server_end = MemoryTransport(loop, server_context, {"sockname": server, "peername": client})
    client_end.peer, server_end.peer = server_end, client_end
    return client_end, server_end


class MemoryTransport(asyncio.Transport):
    """One end of a connection. Written data waits at the other end until it is read."""

    peer: "MemoryTransport"

    def __init__(self, loop: asyncio.AbstractEventLoop, context: contextvars.Context, extra: dict[str, Any]) -> None:
        super().__init__(extra)
        self._loop = loop
        self._context = context
        self._protocol: asyncio.Protocol
        self._incoming: deque[bytes] = deque()
        self._incoming_bytes = 0
        self._is_delivering = False
        self._is_reading = True
        self._has_peer_ended = False
        self._is_closing = False
        self._is_lost = False
        self._high_water_bytes = _HIGH_WATER_BYTES
        self._has_paused_writer = False

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Sets the protocol that receives the data."""
        self._protocol = cast(asyncio.Protocol, protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Returns the protocol that receives the data."""
        return self._protocol

    def is_closing(self) -> bool:
        """Returns whether this end is closed or closing."""
        return self._is_closing

    def is_reading(self) -> bool:
        """Returns whether received data is passed to the protocol."""
        return self._is_reading and not self._is_closing

    def pause_reading(self) -> None:
        """Holds received data until `resume_reading` is called."""
        self._is_reading = False

    def resume_reading(self) -> None:
        """Passes the held data to the protocol, and continues reading."""
        self._is_reading = True
        self._deliver_soon()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Sets the number of unread bytes at the other end above which writing is paused."""
        self._high_water_bytes = _HIGH_WATER_BYTES if high is None else high

    def get_write_buffer_size(self) -> int:
        """Returns the number of unread bytes at the other end."""
        return self.peer._incoming_bytes

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Sends data to the other end."""
        if self._is_closing or not data:
            return
        self._send(bytes(data))
        if self.peer._incoming_bytes > self._high_water_bytes and not self._has_paused_writer:
            self._has_paused_writer = True
            self._call_soon(self._protocol.pause_writing)

    def can_write_eof(self) -> bool:
        """Returns False, because RocketMQ connections are closed in both directions at once."""
        return False

    def close(self) -> None:
        """Closes the connection after the other end has received all data."""
        if not self._is_closing:
            self._is_closing = True
            self._send_end()
            self._call_soon(self._lose, None)

    def abort(self) -> None:
        """Closes the connection immediately."""
        if not self._is_lost:
            self._is_closing = True
            self._call_soon(self._lose, None)
            self._send_reset()

    # sending

    def _send(self, data: bytes) -> None:
        peer = self.peer
        if not peer._is_lost:
            peer._incoming.append(data)
            peer._incoming_bytes += len(data)
            peer._deliver_soon()

    def _send_end(self) -> None:
        self.peer._has_peer_ended = True
        self.peer._deliver_soon()

    def _send_reset(self) -> None:
        if not self.peer._is_closing:
            self.peer._is_closing = True
            self.peer._call_soon(self.peer._lose, connection_reset())

    # receiving

    def _call_soon(self, callback: Callable[..., object], *args: object) -> None:
        self._loop.call_soon(callback, *args, context=self._context)

    def _deliver_soon(self) -> None:
        if not self._is_delivering and (self._incoming or self._has_peer_ended):
            self._is_delivering = True
            self._call_soon(self._deliver)

    def _deliver(self) -> None:
        self._is_delivering = False
        if self._is_lost or not self._is_reading:
            return
        if self._incoming:
            data = b"".join(self._incoming)
            self._incoming.clear()
            self._note_read(len(data))
            if not self._is_closing:
                self._protocol.data_received(data)
        if self._has_peer_ended and not self._is_closing:
            self._protocol.eof_received()
            self.close()

    def _note_read(self, count: int) -> None:
        """Subtracts `count` from the number of unread bytes. Resumes the other end's writing at the low-water mark."""
        self._incoming_bytes -= count
        peer = self.peer
        if peer._has_paused_writer and self._incoming_bytes <= peer._high_water_bytes // _LOW_WATER_SHARE:
            peer._has_paused_writer = False
            if not peer._is_lost:
                peer._call_soon(peer._protocol.resume_writing)

    def _lose(self, error: Exception | None) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._incoming.clear()
            self._incoming_bytes = 0
            self._protocol.connection_lost(error)
