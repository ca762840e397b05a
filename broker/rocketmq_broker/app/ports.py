"""Binds the ports of one broker: listenPort, and listenPort - 2 for the VIP channel."""

import errno
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from rocketmq_broker.app.errors import StartError
from rocketmq_broker.remoting.connections.connection import RequestHandler
from rocketmq_broker.remoting.connections.memory_budget import MemoryBudget
from rocketmq_broker.remoting.limits import MAX_REQUEST_HEADER_LENGTH, ConnectionLimits
from rocketmq_broker.remoting.server import RemotingServer
from rocketmq_broker.remoting.tls import ServerContexts
from rocketmq_broker.server.clients.vip_channel import PORTS_BELOW_LISTEN_PORT, VipChannel

_LIMITS: Final = ConnectionLimits(close_timeout_s=1.0, max_header_length=MAX_REQUEST_HEADER_LENGTH)
_ATTEMPTS: Final = 50
"""The maximum number of attempts to find a free pair of ports. The first attempt nearly always succeeds."""
_LISTEN_PORT: Final = "listenPort"
_VIP_CHANNEL: Final = "listenPort - 2, the VIP channel"


class BrokerPorts:
    """The broker's two ports. Like Apache's broker, the broker does not start if one of them is in use."""

    def __init__(
        self,
        host: str,
        listen_port: int,
        dispatcher: RequestHandler,
        contexts: ServerContexts,
        *,
        memory: MemoryBudget,
        max_connections: int,
        steady_ns: Callable[[], int],
    ) -> None:
        """Creates both ports without binding them.

        If `listen_port` is 0, `bind` chooses a free port such that the port two below it is also free.

        Both ports share the certificate and the memory budget. `max_connections` is the limit for each port.
        """
        self._memory = memory
        self._steady_ns = steady_ns
        self._max_connections = max_connections
        self._host = host
        self._wanted_port = listen_port
        self._dispatcher = dispatcher
        self._contexts = contexts
        self._main = self._server(listen_port, dispatcher)
        self._vip: RemotingServer | None = None

    @property
    def port(self) -> int:
        """The port for clients, valid after `bind`."""
        return self._main.port

    @property
    def connections(self) -> int:
        """The number of open connections on both ports."""
        return len(self._main.connections) + (len(self._vip.connections) if self._vip is not None else 0)

    async def bind(self) -> None:
        """Binds both ports, but does not listen yet. Raises StartError."""
        attempts_left = _ATTEMPTS if self._wanted_port == 0 else 1
        while self._vip is None:
            attempts_left -= 1
            try:
                self._vip = await self._bind_pair()
            except StartError:
                await self._main.stop()
                if not attempts_left:
                    raise
                self._main = self._server(self._wanted_port, self._dispatcher)

    async def start(self) -> None:
        """Starts listening on both ports. Raises StartError."""
        assert self._vip is not None
        await listening(self._vip.start, self._host, self._vip.port, _VIP_CHANNEL)
        await listening(self._main.start, self._host, self._main.port, _LISTEN_PORT)

    def stop_listening(self) -> None:
        """Stops accepting connections. Open connections stay open."""
        for server in self._servers():
            server.stop_listening()

    async def stop(self) -> None:
        """Stops listening, sends buffered data, and closes all connections."""
        for server in self._servers():
            await server.stop()

    async def _bind_pair(self) -> RemotingServer:
        await listening(self._main.bind, self._host, self._wanted_port, _LISTEN_PORT)
        vip_port = self._main.port - PORTS_BELOW_LISTEN_PORT
        vip = self._server(vip_port, VipChannel(self._dispatcher))
        # Another broker that chose its port may have bound this one, and not listen yet.
        bind = partial(vip.bind, is_exclusive=self._wanted_port == 0)
        await listening(bind, self._host, vip_port, _VIP_CHANNEL)
        return vip

    def _servers(self) -> list[RemotingServer]:
        return [self._main] if self._vip is None else [self._main, self._vip]

    def _server(self, port: int, handler: RequestHandler) -> RemotingServer:
        return RemotingServer(
            self._host,
            port,
            handler,
            limits=_LIMITS,
            memory=self._memory,
            max_connections=self._max_connections,
            contexts=self._contexts,
            steady_ns=self._steady_ns,
        )


async def listening(listen: Callable[[], Awaitable[None]], host: str, port: int, property_name: str) -> None:
    """Calls `listen`. If it fails, raises StartError with the address and the name of the property that sets the port."""
    try:
        await listen()
    except OSError as error:
        raise cannot_listen(error, host, port, property_name) from None


def cannot_listen(error: OSError, host: str, port: int, property_name: str) -> StartError:
    """Returns the error for an address that cannot be used."""
    reason = "the port is in use" if error.errno == errno.EADDRINUSE else error.strerror or str(error)
    return StartError(f"cannot listen on {host}:{port} ({property_name}): {reason}")
