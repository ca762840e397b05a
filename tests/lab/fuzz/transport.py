"""A transport without a socket, for frames that go straight into a connection."""

import asyncio
from typing import Any

from rocketmq_broker.remoting.connections.connection import Connection


class MemoryTransport(asyncio.Transport):
    """A transport that counts the written bytes and keeps the last responses."""

    def __init__(self, connection: Connection, port: int) -> None:
        super().__init__({"peername": ("127.0.0.1", port)})
        self._connection = connection
        self._is_closing = False
        self.written = bytearray()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Keeps the written data, up to about 1 MiB."""
        if len(self.written) < 1 << 20:
            self.written += data

    def get_write_buffer_size(self) -> int:
        """Returns 0, because no written data waits to be sent."""
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Does nothing, because there is no buffer."""

    def is_closing(self) -> bool:
        """Returns whether the transport was closed."""
        return self._is_closing

    def pause_reading(self) -> None:
        """Does nothing, because the transport does not read."""

    def resume_reading(self) -> None:
        """Does nothing, because the transport does not read."""

    def close(self) -> None:
        """Closes the transport. Like a socket, it notifies the connection in the next iteration of the loop."""
        if not self._is_closing:
            self._is_closing = True
            asyncio.get_running_loop().call_soon(self._connection.connection_lost, None)

    abort = close


def connected(handler: Any, open_connections: set[Connection], port: int) -> tuple[Connection, MemoryTransport]:
    """Returns an open server connection and its transport."""
    connection = Connection(handler, open_connections=open_connections)
    transport = MemoryTransport(connection, port)
    connection.connection_made(transport)
    return connection, transport
