"""Opens and accepts connections. It uses TCP unless a test substitutes another network."""

import asyncio
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

from rocketmq_broker.platform.limits import allow_reservation
from rocketmq_broker.remoting.acceptor import Acceptor

P = TypeVar("P", bound=asyncio.Protocol)


class Listener(Protocol):
    """A bound port that accepts connections between `start` and `stop`."""

    @property
    def port(self) -> int:
        """Returns the port's number."""

    def start(self) -> None:
        """Starts accepting connections. Raises OSError."""

    def stop(self) -> None:
        """Stops accepting connections, and releases the port. Accepted connections stay open."""


class Network(Protocol):
    """The interface between this package and a network."""

    async def bind(
        self, new_protocol: Callable[[], asyncio.Protocol], host: str, port: int, backlog: int, *, is_exclusive: bool = False
    ) -> Listener:
        """Binds the port without listening. Port 0 means any free port. Raises OSError.

        Without `is_exclusive`, another program may have bound the port without listening: then the first one that listens keeps
        it. With it, a port that was in use a minute ago may be refused.
        """

    async def connect(self, new_protocol: Callable[[], P], host: str, port: int, tls: ssl.SSLContext | None) -> P:
        """Opens a connection. Raises OSError or ssl.SSLError."""

    def served(self, protocol: asyncio.Protocol) -> asyncio.Protocol:
        """Adapts a server's protocol for a connection that this network did not accept. Returns the adapted protocol."""


class TcpNetwork:
    """The network of TCP sockets."""

    async def bind(
        self, new_protocol: Callable[[], asyncio.Protocol], host: str, port: int, backlog: int, *, is_exclusive: bool = False
    ) -> Listener:
        """Binds a TCP port without listening. Port 0 means any free port. Raises OSError."""
        loop = asyncio.get_running_loop()
        reuses = False if is_exclusive else None
        server = await loop.create_server(new_protocol, host, port, reuse_address=reuses, start_serving=False)
        # asyncio resolves the name and binds the sockets, which the acceptor then uses.
        sockets = [sock.dup() for sock in server.sockets]
        server.close()
        for sock in sockets:
            sock.setblocking(False)
            if is_exclusive:
                allow_reservation(sock)
        return Acceptor(sockets, new_protocol, backlog)

    async def connect(self, new_protocol: Callable[[], P], host: str, port: int, tls: ssl.SSLContext | None) -> P:
        """Opens a TCP connection, with TLS if `tls` is given. Raises OSError or ssl.SSLError."""
        loop = asyncio.get_running_loop()
        _, protocol = await loop.create_connection(
            new_protocol, host, port, ssl=tls, server_hostname=host if tls is not None else None
        )
        return protocol

    def served(self, protocol: asyncio.Protocol) -> asyncio.Protocol:
        """Returns the protocol unchanged."""
        return protocol


_current: ContextVar[Network] = ContextVar("network", default=TcpNetwork())  # noqa: B039 (it has no state)


def current_network() -> Network:
    """Returns the network of the current context, which new tasks and timers inherit."""
    return _current.get()


@contextmanager
def on_network(network: Network) -> Iterator[None]:
    """Makes `network` the current network inside the block. Servers and clients created inside continue to use it."""
    token = _current.set(network)
    try:
        yield
    finally:
        _current.reset(token)


def connect_by(network: Network) -> None:
    """Makes `network` the current network for the rest of the caller's context."""
    _current.set(network)
