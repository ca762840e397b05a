"""The gRPC server: a port for clients, and its connections, with TLS, limits and rate-limited log lines."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final

from rocketmq_broker.proxy.connections.call import Call, Method
from rocketmq_broker.proxy.connections.http2 import Http2Connection
from rocketmq_broker.remoting.complaints import Complaints
from rocketmq_broker.remoting.connections.memory_budget import MemoryBudget
from rocketmq_broker.remoting.connections.turn import Turn
from rocketmq_broker.remoting.network import Listener, TcpNetwork
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.remoting.tls import Opening, ServerContexts, TlsMode

logger = logging.getLogger(__name__)

_BACKLOG: Final = 1024
_TURN_S: Final = 0.002
"""The maximum time in seconds for all gRPC connections in one turn of the event loop.

The time is short, because an answer takes several turns.
"""
_CHECK_EVERY_S: Final = 5.0


class GrpcServer:
    """The port of the gRPC server, and its connections."""

    def __init__(
        self,
        contexts: ServerContexts,
        memory: MemoryBudget,
        max_connections: int,
        steady_ns: Callable[[], int],
        on_ended: Callable[[tuple[str, int]], None],
    ) -> None:
        """Creates a server. Other ports share `memory`. `on_ended` is called with the address of each closed connection."""
        self.memory = memory
        self.turn: Turn
        self.connections: dict[Http2Connection, None] = {}
        """The open connections."""
        self._contexts = contexts
        self._max_connections = max_connections
        self._steady_ns = steady_ns
        self._on_ended = on_ended
        self._complaints = Complaints()
        self._tasks = Tasks()
        self._calls = Tasks()
        self._listener: Listener | None = None
        self._methods: Mapping[bytes, Method] = {}

    @property
    def port(self) -> int:
        """Returns the port. Call it after `bind`."""
        assert self._listener is not None
        return self._listener.port

    async def bind(self, host: str, port: int) -> None:
        """Binds the port without listening yet. Raises OSError."""
        self.turn = Turn(asyncio.get_running_loop(), self._steady_ns, _TURN_S)
        self._listener = await TcpNetwork().bind(self._new_connection, host, port, _BACKLOG)

    def start(self, methods: Mapping[bytes, Method]) -> None:
        """Starts accepting connections. `methods` maps paths to methods. Raises OSError."""
        assert self._listener is not None
        self._methods = methods
        self._listener.start()
        self._tasks.every(_CHECK_EVERY_S, "checking gRPC connections", self._look)

    def stop_listening(self) -> None:
        """Stops accepting connections. Existing connections stay open."""
        if self._listener is not None:
            self._listener.stop()

    async def stop(self, within_s: float) -> None:
        """Stops listening, waits up to `within_s` seconds for calls in progress, and closes all connections."""
        self.stop_listening()
        await self._tasks.stop()
        for connection in list(self.connections):
            connection.leave()
        await self._calls.settle(within_s)
        await self._calls.stop()
        await asyncio.sleep(0)  # the statuses of the last calls are written
        for connection in list(self.connections):
            connection.close()

    # ConnectionOwner

    def method(self, path: bytes) -> Method | None:
        """Returns the method at that path, or None if there is none."""
        return self._methods.get(path)

    def run(self, call: Call) -> asyncio.Task[None]:
        """Starts the task that handles the call."""
        return self._calls.start("a gRPC call", call.method.serve(call), is_awaited=True)  # type: ignore[arg-type]

    def admit(self, connection: Http2Connection) -> bool:
        """Adds the connection. Returns False if the maximum number of connections is reached."""
        if len(self.connections) >= self._max_connections:
            self.complain("", "too many", f"{self._max_connections} connections are open, the maximum")
            return False
        self.connections[connection] = None
        return True

    def ended(self, connection: Http2Connection) -> None:
        """Removes a closed connection."""
        if self.connections.pop(connection, connection) is None:
            self._on_ended(connection.address)

    def complain(self, peer: str, cause: str, reason: str) -> None:
        """Logs why a connection is closed, at most once a minute for each host and cause."""
        if self._complaints.is_due(peer.rpartition(":")[0], cause, asyncio.get_running_loop().time()):
            logger.warning("closing the connection of %s: %s", peer or "a client", reason)

    def _look(self) -> None:
        now_s = asyncio.get_running_loop().time()
        for connection in list(self.connections):
            connection.look(now_s)

    def _new_connection(self) -> asyncio.Protocol:
        connection = Http2Connection(self)
        if self._contexts.mode is TlsMode.DISABLED:
            return connection
        return Opening(connection, self._contexts, self._tasks, self._complaints)
