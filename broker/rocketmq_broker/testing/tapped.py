"""A transport that shows outgoing frames to a function before they leave."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterator
from typing import Any, Final

Outgoing = Callable[[asyncio.Transport, str, bytes], bytes]
"""Gets the transport, the address of its other end and the written data; returns the data to send."""

_LENGTH: Final = struct.Struct(">I")


class Tapped(asyncio.Transport):
    """The transport `transport`, except for its `write`."""

    def __init__(self, transport: asyncio.Transport, outgoing: Outgoing) -> None:
        super().__init__()
        self._transport = transport
        self._outgoing = outgoing
        host, port = (transport.get_extra_info("peername") or ("?", 0))[:2]
        self.peer = f"{host}:{port}"

    def __getattribute__(self, name: str) -> Any:
        """Returns the transport's own attribute, except for `write`."""
        if name in {"write", "_transport", "_outgoing", "peer"}:
            return object.__getattribute__(self, name)
        return getattr(object.__getattribute__(self, "_transport"), name)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Sends the part of the data that the function returns."""
        if left := self._outgoing(self._transport, self.peer, bytes(data)):
            self._transport.write(left)


def frames(data: bytes) -> Iterator[bytes]:
    """Yields the frames of one write. The last one may be incomplete."""
    position = 0
    while position + _LENGTH.size <= len(data):
        end = position + _LENGTH.size + int(_LENGTH.unpack_from(data, position)[0])
        yield data[position:end]
        position = end
    if position < len(data):
        yield data[position:]
