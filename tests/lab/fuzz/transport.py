"""A transport without a socket, for frames that go straight into a connection."""

from __future__ import annotations

import asyncio
from typing import Any

from rocketmq_broker.remoting.connections.connection import Connection


class MemoryTransport(asyncio.Transport):
    """Takes what is written, counts it, and keeps the last answers."""

    def __init__(self, connection: Connection, port: int) -> None:
        super().__init__({"peername": ("127.0.0.1", port)})
        self._connection = connection
        self._is_closing = False
        self.written = bytearray()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Keeps what was written, as long as it is not much."""
        if len(self.written) < 1 << 20:
            self.written += data

    def get_write_buffer_size(self) -> int:
        """Everything left at once."""
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """There is no buffer."""

    def is_closing(self) -> bool:
        """Whether it was closed."""
        return self._is_closing

    def pause_reading(self) -> None:
        """Nothing is read."""

    def resume_reading(self) -> None:
        """Nothing is read."""

    def close(self) -> None:
        """The connection learns of it in the next iteration of the loop, as from a socket."""
        if not self._is_closing:
            self._is_closing = True
            asyncio.get_running_loop().call_soon(self._connection.connection_lost, None)

    abort = close


def connected(handler: Any, open_connections: set[Connection], port: int) -> tuple[Connection, MemoryTransport]:
    """A connection of a server, open."""
    connection = Connection(handler, open_connections=open_connections)
    transport = MemoryTransport(connection, port)
    connection.connection_made(transport)
    return connection, transport
