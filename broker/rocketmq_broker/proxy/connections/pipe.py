"""A connection inside the process. The other end reads written bytes in a later turn of the event loop."""

import asyncio
from collections.abc import Iterable
from typing import Any, Final

_HIGH_WATER_BYTES: Final = 64 * 1024


class PipeEnd(asyncio.Transport):
    """One end of a pipe, which is the transport of one protocol."""

    def __init__(self, protocol: asyncio.BaseProtocol, peer: tuple[str, int]) -> None:
        """Creates one end. `peer` is the other end's address, which is reported to the protocol."""
        super().__init__({"peername": peer})
        self._loop = asyncio.get_running_loop()
        self._protocol: Any = protocol
        self._other: PipeEnd | None = None
        self._unread: list[bytes] = []
        self._unread_bytes = 0
        self._high_water_bytes = _HIGH_WATER_BYTES
        self._is_paused = self._is_closing = self._is_lost = False
        self._has_other_ended = self._is_writing_paused = self._is_delivery_due = False

    def joined_to(self, other: "PipeEnd") -> None:
        """Connects this end to the other end."""
        self._other = other

    # asyncio.Transport

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Passes the bytes to the other end. A closing pipe drops them."""
        if data and not self._is_closing and self._other is not None:
            self._other.receive(bytes(data))

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        """Passes all of the bytes to the other end."""
        self.write(b"".join(list_of_data))

    def get_write_buffer_size(self) -> int:
        """Returns the number of bytes that the other end has not read."""
        return self._other.unread_bytes if self._other is not None else 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Sets the number of unread bytes above which the protocol is paused. The protocol resumes once all bytes are read."""
        self._high_water_bytes = _HIGH_WATER_BYTES if high is None else high

    def pause_reading(self) -> None:
        """Keeps received bytes until `resume_reading`."""
        self._is_paused = True

    def resume_reading(self) -> None:
        """Passes the kept bytes to the protocol."""
        self._is_paused = False
        self._deliver_later()

    def is_reading(self) -> bool:
        """Returns whether received bytes are passed to the protocol."""
        return not self._is_paused and not self._is_closing

    def is_closing(self) -> bool:
        """Returns whether this end is closed or closing."""
        return self._is_closing

    def close(self) -> None:
        """Closes both ends. The other protocol first reads the bytes already written."""
        if not self._is_closing:
            self._is_closing = True
            self._loop.call_soon(self.lose)

    def abort(self) -> None:
        """Closes both ends."""
        self.close()

    # called by the other end

    @property
    def unread_bytes(self) -> int:
        """Returns the number of bytes that this end has not read."""
        return self._unread_bytes

    def receive(self, data: bytes) -> None:
        """Receives bytes from the other end."""
        if self._is_closing:
            return
        self._unread.append(data)
        self._unread_bytes += len(data)
        if self._other is not None:
            self._other.note_unread()
        self._deliver_later()

    def note_unread(self) -> None:
        """Pauses or resumes the protocol's writing, depending on the number of unread bytes."""
        unread = self.get_write_buffer_size()
        if unread > self._high_water_bytes and not self._is_writing_paused:
            self._is_writing_paused = True
            self._protocol.pause_writing()
        elif not unread and self._is_writing_paused:
            self._is_writing_paused = False
            self._protocol.resume_writing()

    def other_ended(self) -> None:
        """Closes this end as well, once all bytes are read."""
        self._has_other_ended, self._is_paused = True, False
        self._deliver_later()

    def lose(self) -> None:
        """Closes the pipe and notifies the protocol."""
        if self._is_lost:
            return
        self._is_lost = self._is_closing = True
        self._unread.clear()
        self._unread_bytes = 0
        other, self._other = self._other, None
        if other is not None:
            other.other_ended()
        protocol, self._protocol = self._protocol, None
        protocol.connection_lost(None)

    def _deliver_later(self) -> None:
        if not self._is_delivery_due and not self._is_lost:
            self._is_delivery_due = True
            self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        self._is_delivery_due = False
        if self._is_paused or self._is_closing:
            return
        if self._unread:
            data = b"".join(self._unread)
            self._unread.clear()
            self._unread_bytes = 0
            self._protocol.data_received(data)
            if self._other is not None:
                self._other.note_unread()
        if self._has_other_ended and not self._unread:
            self.lose()


def join(
    near: asyncio.BaseProtocol, far: asyncio.BaseProtocol, *, near_address: tuple[str, int], far_address: tuple[str, int]
) -> None:
    """Connects two protocols. Each protocol gets the other protocol's address as its peer address."""
    near_end, far_end = PipeEnd(near, far_address), PipeEnd(far, near_address)
    near_end.joined_to(far_end)
    far_end.joined_to(near_end)
    far.connection_made(far_end)
    near.connection_made(near_end)
