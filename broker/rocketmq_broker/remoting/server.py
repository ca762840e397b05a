"""The listening end (RocketMQ's NettyRemotingServer)."""

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

DEFAULT_MOST_CONNECTIONS: Final = 20_000


class RemotingServer:
    """A server that accepts connections and hands their requests to one handler."""

    def __init__(
        self,
        host: str,
        port: int,
        handler: RequestHandler,
        *,
        steady_ns: Callable[[], int],
        limits: ConnectionLimits | None = None,
        memory: MemoryBudget | None = None,
        most_connections: int = DEFAULT_MOST_CONNECTIONS,
        backlog: int = 1024,
        contexts: ServerContexts | None = None,
    ) -> None:
        """Port 0 takes any free port. `memory` may be shared with other servers; connections beyond the most are closed.

        `steady_ns` returns nanoseconds since an arbitrary moment.
        Without `contexts`, or where their mode is disabled, TLS is refused.
        """
        self.host = host
        self.connections: set[Connection] = set()
        """The open connections."""
        self._port = port
        self._handler = handler
        self._limits = limits or ConnectionLimits(max_header_length=MAX_REQUEST_HEADER_LENGTH)
        self._memory = memory or MemoryBudget()
        self._most_connections = most_connections
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
        """Returns the port on which it listens, once started."""
        return self._port

    async def bind(self) -> None:
        """Binds the port, but does not listen yet. Raises OSError if the address cannot be used."""
        await self._bind()

    async def start(self) -> None:
        """Listens when it returns. Raises OSError if the address cannot be used."""
        listener = self._listener or await self._bind()
        listener.start()

    def stop_listening(self) -> None:
        """Stops accepting connections; open ones stay."""
        if self._listener is not None:
            self._listener.stop()

    async def stop(self) -> None:
        """Stops listening, sends what is unsent and closes all connections."""
        self.stop_listening()
        await self._tasks.stop()
        closing = sorted(self.connections, key=lambda connection: connection.peer)  # the same order each time
        for connection in closing:
            connection.close()
        await asyncio.gather(*(connection.wait_closed() for connection in closing))
        self._listener = None

    async def _bind(self) -> Listener:
        self._turn = Turn(asyncio.get_running_loop(), self._steady_ns)
        listener = self._listener = await self._network.bind(self._new_connection, self.host, self._port, self._backlog)
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
            most_connections=self._most_connections,
        )
        if self._contexts is None or self._contexts.mode is TlsMode.DISABLED:
            return connection
        return Opening(connection, self._contexts, self._tasks, self._complaints)
