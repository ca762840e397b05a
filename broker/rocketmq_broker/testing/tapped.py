"""A transport that passes outgoing data to a function before it is sent."""

import asyncio
import struct
from collections.abc import Callable, Iterator
from typing import Any, Final

Outgoing = Callable[[asyncio.Transport, str, bytes], bytes]
"""A callback with the transport, the peer's address and the written data. Returns the data to send."""

_LENGTH: Final = struct.Struct(">I")


class Tapped(asyncio.Transport):
    """Wraps a transport, and replaces only its `write`."""

    def __init__(self, transport: asyncio.Transport, outgoing: Outgoing) -> None:
        super().__init__()
        self._transport = transport
        self._outgoing = outgoing
        host, port = (transport.get_extra_info("peername") or ("?", 0))[:2]
        self.peer = f"{host}:{port}"

    def __getattribute__(self, name: str) -> Any:
        """Returns the wrapped transport's attribute, except for `write`."""
        if name in {"write", "_transport", "_outgoing", "peer"}:
            return object.__getattribute__(self, name)
        return getattr(object.__getattribute__(self, "_transport"), name)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Passes the data to the function, and sends the data that it returns."""
        if left := self._outgoing(self._transport, self.peer, bytes(data)):
            self._transport.write(left)


def frames(data: bytes) -> Iterator[bytes]:
    """Yields the frames in one write. The last frame may be incomplete."""
    position = 0
    while position + _LENGTH.size <= len(data):
        end = position + _LENGTH.size + int(_LENGTH.unpack_from(data, position)[0])
        yield data[position:end]
        position = end
    if position < len(data):
        yield data[position:]
