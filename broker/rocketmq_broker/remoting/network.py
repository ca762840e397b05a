"""The source of connections: TCP, unless a test replaces it with its own network."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

from rocketmq_broker.remoting.acceptor import Acceptor

P = TypeVar("P", bound=asyncio.Protocol)


class Listener(Protocol):
    """A bound port."""

    @property
    def port(self) -> int:
        """Returns the port's number."""

    def start(self) -> None:
        """Accepts connections when it returns. Raises OSError."""

    def stop(self) -> None:
        """Stops accepting, and releases the port. Accepted connections stay."""


class Network(Protocol):
    """The port to a network for the remoting package."""

    async def bind(self, new_protocol: Callable[[], asyncio.Protocol], host: str, port: int, backlog: int) -> Listener:
        """Binds the port, any free one for 0, but does not listen yet. Raises OSError."""

    async def connect(self, new_protocol: Callable[[], P], host: str, port: int, tls: ssl.SSLContext | None) -> P:
        """Makes a connection. Raises OSError, ssl.SSLError."""

    def served(self, protocol: asyncio.Protocol) -> asyncio.Protocol:
        """Returns the protocol that takes the place of a server's own, for a connection that came by no port of the network."""


class TcpNetwork:
    """The network of TCP sockets."""

    async def bind(self, new_protocol: Callable[[], asyncio.Protocol], host: str, port: int, backlog: int) -> Listener:
        """Binds a TCP port, any free one for 0, but does not listen yet. Raises OSError."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(new_protocol, host, port, start_serving=False)
        # asyncio resolves the name and binds; the acceptor accepts.
        sockets = [sock.dup() for sock in server.sockets]
        server.close()
        for sock in sockets:
            sock.setblocking(False)
        return Acceptor(sockets, new_protocol, backlog)

    async def connect(self, new_protocol: Callable[[], P], host: str, port: int, tls: ssl.SSLContext | None) -> P:
        """Makes a TCP connection, with TLS if `tls` is given. Raises OSError, ssl.SSLError."""
        loop = asyncio.get_running_loop()
        _, protocol = await loop.create_connection(
            new_protocol, host, port, ssl=tls, server_hostname=host if tls is not None else None
        )
        return protocol

    def served(self, protocol: asyncio.Protocol) -> asyncio.Protocol:
        """Returns the server's own protocol."""
        return protocol


_current: ContextVar[Network] = ContextVar("network", default=TcpNetwork())  # noqa: B039 (it has no state)


def current_network() -> Network:
    """Returns the caller's network. Tasks and timers inherit it."""
    return _current.get()


@contextmanager
def on_network(network: Network) -> Iterator[None]:
    """Makes `network` the current one inside the block. Servers and clients that are made inside keep it."""
    token = _current.set(network)
    try:
        yield
    finally:
        _current.reset(token)


def connect_by(network: Network) -> None:
    """Makes `network` the current one for the rest of the caller's context."""
    _current.set(network)
