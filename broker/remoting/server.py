"""The listening end (RocketMQ's NettyRemotingServer)."""

import asyncio

from broker.remoting.acceptor import Acceptor
from broker.remoting.complaints import Complaints
from broker.remoting.connection import Connection, ConnectionLimits, RequestHandler


class RemotingServer:
    """Accepts connections and hands their requests to one handler."""

    def __init__(
        self, host: str, port: int, handler: RequestHandler, *, limits: ConnectionLimits | None = None, backlog: int = 1024
    ) -> None:
        """Port 0 takes any that is free."""
        self.host = host
        self.connections: set[Connection] = set()
        """The open ones."""
        self._port = port
        self._handler = handler
        self._limits = limits or ConnectionLimits()
        self._complaints = Complaints()
        self._backlog = backlog
        self._acceptor: Acceptor | None = None

    @property
    def port(self) -> int:
        """The port it listens on, once started."""
        return self._port

    async def bind(self) -> None:
        """Takes the port, but does not listen yet. Raises OSError if the address cannot be had."""
        server = await asyncio.get_running_loop().create_server(self._new_connection, self.host, self._port, start_serving=False)
        # asyncio resolves the name and binds; accepting is the acceptor's.
        sockets = [sock.dup() for sock in server.sockets]
        server.close()
        for sock in sockets:
            sock.setblocking(False)
        self._acceptor = Acceptor(sockets, self._new_connection, self._backlog)
        self._port = sockets[0].getsockname()[1]

    async def start(self) -> None:
        """Listens when it returns. Raises OSError if the address cannot be had."""
        if self._acceptor is None:
            await self.bind()
        assert self._acceptor is not None
        self._acceptor.start()

    def stop_listening(self) -> None:
        """Takes no more connections; those there are stay."""
        if self._acceptor is not None:
            self._acceptor.stop()

    async def stop(self) -> None:
        """Listens no more, sends what is unsent and closes all connections."""
        self.stop_listening()
        closing = list(self.connections)
        for connection in closing:
            connection.close()
        await asyncio.gather(*(connection.wait_closed() for connection in closing))
        self._acceptor = None

    def _new_connection(self) -> Connection:
        return Connection(self._handler, open_connections=self.connections, limits=self._limits, complaints=self._complaints)
