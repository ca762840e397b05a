"""Where connections come from: TCP, unless a test puts a network of its own in its place."""

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
    """A port that was taken."""

    @property
    def port(self) -> int:
        """Which one."""

    def start(self) -> None:
        """Takes connections when it returns. Raises OSError."""

    def stop(self) -> None:
        """Takes no more, and gives the port back. Connections that were taken stay."""


class Network(Protocol):
    """What the remoting package asks of a network."""

    async def bind(self, new_protocol: Callable[[], asyncio.Protocol], host: str, port: int, backlog: int) -> Listener:
        """Takes the port, any that is free for 0, but does not listen yet. Raises OSError."""

    async def connect(self, new_protocol: Callable[[], P], host: str, port: int, tls: ssl.SSLContext | None) -> P:
        """Connects. Raises OSError, ssl.SSLError."""


class TcpNetwork:
    """The real one."""

    async def bind(self, new_protocol: Callable[[], asyncio.Protocol], host: str, port: int, backlog: int) -> Listener:
        """See Network."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(new_protocol, host, port, start_serving=False)
        # asyncio resolves the name and binds; accepting is the acceptor's.
        sockets = [sock.dup() for sock in server.sockets]
        server.close()
        for sock in sockets:
            sock.setblocking(False)
        return Acceptor(sockets, new_protocol, backlog)

    async def connect(self, new_protocol: Callable[[], P], host: str, port: int, tls: ssl.SSLContext | None) -> P:
        """See Network."""
        loop = asyncio.get_running_loop()
        _, protocol = await loop.create_connection(
            new_protocol, host, port, ssl=tls, server_hostname=host if tls is not None else None
        )
        return protocol


_current: ContextVar[Network] = ContextVar("network", default=TcpNetwork())  # noqa: B039 (it has no state)


def current_network() -> Network:
    """The network of whoever calls. Tasks and timers inherit it."""
    return _current.get()


@contextmanager
def on_network(network: Network) -> Iterator[None]:
    """Servers and clients that are made inside use that network, for good."""
    token = _current.set(network)
    try:
        yield
    finally:
        _current.reset(token)
