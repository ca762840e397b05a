"""A server that accepts connections (RocketMQ's NettyRemotingServer)."""

import asyncio
from collections.abc import Callable
from typing import Final

from rocketmq_broker.remoting.complaints import Complaints
from rocketmq_broker.remoting.connections.connection import Connection, RequestHandler
from rocketmq_broker.remoting.connections.memory_budget import MemoryBudget
from rocketmq_broker.remoting.connections.turn import Turn
from rocketmq_broker.remoting.limits import MAX_REQUEST_HEADER_LENGTH, ConnectionLimits
from rocketmq_broker.remoting.network import Listener, current_network
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.remoting.tls import Opening, ServerContexts, TlsMode

DEFAULT_MAX_CONNECTIONS: Final = 20_000


class RemotingServer:
    """Accepts connections, and passes their requests to one handler."""

    def __init__(
        self,
        host: str,
        port: int,
        handler: RequestHandler,
        *,
        steady_ns: Callable[[], int],
        limits: ConnectionLimits | None = None,
        memory: MemoryBudget | None = None,
        max_connections: int = DEFAULT_MAX_CONNECTIONS,
        backlog: int = 1024,
        contexts: ServerContexts | None = None,
    ) -> None:
        """Creates a server that does not listen yet. Port 0 means any free port. `memory` may be shared with other servers.

        `steady_ns` is a monotonic clock.

        Connections beyond `max_connections` are closed. TLS connections are refused if `contexts` is None or the TLS mode is
        disabled.
        """
        self.host = host
        self.connections: set[Connection] = set()
        """The open connections."""
        self._port = port
        self._handler = handler
        self._limits = limits or ConnectionLimits(max_header_length=MAX_REQUEST_HEADER_LENGTH)
        self._memory = memory or MemoryBudget()
        self._max_connections = max_connections
        self._steady_ns = steady_ns
        self._turn: Turn | None = None
        self._complaints = Complaints()
        self._backlog = backlog
        self._contexts = contexts
        self._tasks = Tasks()
        self._network = current_network()
        self._listener: Listener | None = None

    @property
    def port(self) -> int:
        """Returns the port on which the server listens. Call it after `bind` or `start`."""
        return self._port

    async def bind(self, *, is_exclusive: bool = False) -> None:
        """Binds the port without listening. Raises OSError if the address cannot be used.

        With `is_exclusive`, it is also refused if another program has bound it and does not listen yet.
        """
        await self._bind(is_exclusive=is_exclusive)

    async def start(self) -> None:
        """Starts listening. Raises OSError if the address cannot be used."""
        listener = self._listener or await self._bind()
        listener.start()

    def stop_listening(self) -> None:
        """Stops accepting connections. Existing connections stay open."""
        if self._listener is not None:
            self._listener.stop()

    async def stop(self) -> None:
        """Stops listening, sends all unsent data, and closes all connections."""
        self.stop_listening()
        await self._tasks.stop()
        closing = sorted(self.connections, key=lambda connection: connection.peer)  # sorted, so that simulations can be replayed
        for connection in closing:
            connection.close()
        await asyncio.gather(*(connection.wait_closed() for connection in closing))
        self._listener = None

    async def _bind(self, *, is_exclusive: bool = False) -> Listener:
        self._turn = Turn(asyncio.get_running_loop(), self._steady_ns)
        listener = self._listener = await self._network.bind(
            self._new_connection, self.host, self._port, self._backlog, is_exclusive=is_exclusive
        )
        self._port = listener.port
        return listener

    def _new_connection(self) -> asyncio.Protocol:
        connection = Connection(
            self._handler,
            open_connections=self.connections,
            limits=self._limits,
            complaints=self._complaints,
            turn=self._turn,
            memory=self._memory,
            max_connections=self._max_connections,
        )
        if self._contexts is None or self._contexts.mode is TlsMode.DISABLED:
            return connection
        return Opening(connection, self._contexts, self._tasks, self._complaints)
