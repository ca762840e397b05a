"""A connection's transport over TLS: it has the interface of the socket's own, so the connection needs no change."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Any, Final

from rocketmq_broker.remoting.complaints import Complaints
from rocketmq_broker.remoting.tls.errors import words_of
from rocketmq_broker.remoting.tls.handshakes import Handshakes
from rocketmq_broker.remoting.tls.tunnel import TlsTunnel

HANDSHAKE_TIMEOUT_S: Final = 10.0

logger = logging.getLogger(__name__)


class SecureTransport(asyncio.Transport):
    """A transport that encrypts output for the socket's transport."""

    def __init__(self, socket: asyncio.Transport, tunnel: TlsTunnel) -> None:
        super().__init__()
        self._socket = socket
        self._tunnel = tunnel

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Sends the data, or keeps it until the handshake is done."""
        self._tunnel.send(bytes(data))
        self.flush()

    def flush(self) -> None:
        """Passes the tunnel's output to the socket."""
        if (data := self._tunnel.take_outgoing()) and not self._socket.is_closing():
            self._socket.write(data)

    def close(self) -> None:
        """Ends TLS, and closes once everything is sent."""
        if not self._socket.is_closing():
            self._tunnel.end()
            self.flush()
        self._socket.close()

    def abort(self) -> None:
        """Closes at once."""
        self._socket.abort()

    def is_closing(self) -> bool:
        """Returns whether the transport is closed or being closed."""
        return self._socket.is_closing()

    def pause_reading(self) -> None:
        """Stops reading from the socket."""
        self._socket.pause_reading()

    def resume_reading(self) -> None:
        """Reads from the socket again."""
        self._socket.resume_reading()

    def get_write_buffer_size(self) -> int:
        """Returns the number of bytes that the socket has not taken."""
        return self._socket.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Returns the information of the socket's transport."""
        return self._socket.get_extra_info(name, default)


class SecureProtocol(asyncio.Protocol):
    """A protocol that decrypts the socket's input for the connection above it."""

    def __init__(
        self,
        above: asyncio.Protocol,
        transport: SecureTransport,
        socket: asyncio.Transport,
        tunnel: TlsTunnel,
        *,
        peer: str,
        complaints: Complaints,
        handshakes: Handshakes,
    ) -> None:
        """Begins with the handshake, which has 10 s, and less if others need its room among the `handshakes`."""
        self._above = above
        self._transport = transport
        self._socket = socket
        self._tunnel = tunnel
        self._peer = peer
        self._complaints = complaints
        self._has_failed = False
        self._on_handshake_over: Callable[[], None] | None = handshakes.begin(_ip_of(peer), self._crowded_out)
        self._timer = asyncio.get_running_loop().call_later(HANDSHAKE_TIMEOUT_S, self._give_up)

    def data_received(self, data: bytes) -> None:
        """Decrypts the bytes, and passes the plain ones to the connection."""
        if self._socket.is_closing():
            return
        try:
            plain = self._tunnel.receive(data)
        except ssl.SSLError as error:
            self._fail(error)
            return
        self._transport.flush()
        if self._tunnel.is_open:
            self._handshake_over()
        if plain:
            self._above.data_received(plain)
        if self._tunnel.is_ended:
            self._transport.close()

    def eof_received(self) -> bool | None:
        """Passes the end of input on to the connection."""
        return self._above.eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        """Ends the handshake, and passes on the end of the connection."""
        if not self._tunnel.is_open and not self._has_failed:
            self._complain("left", "it left during its TLS handshake: perhaps it does not trust the certificate")
        self._handshake_over()
        self._above.connection_lost(error)

    def pause_writing(self) -> None:
        """Passes on that the peer reads too slowly."""
        self._above.pause_writing()

    def resume_writing(self) -> None:
        """Passes on that the peer has taken its output."""
        self._above.resume_writing()

    def _fail(self, error: ssl.SSLError) -> None:
        self._has_failed = True
        self._transport.flush()  # the alert tells the peer the reason
        what = "a broken record" if self._tunnel.is_open else "no TLS handshake"
        self._complain(words_of(error), f"{what}: {words_of(error)}")
        self._socket.close()

    def _give_up(self) -> None:
        self._has_failed = True
        self._complain("late", f"no TLS handshake within {HANDSHAKE_TIMEOUT_S:g} s")
        self._socket.abort()

    def _crowded_out(self) -> None:
        self._has_failed = True
        self._complain("crowded out", "its TLS handshake is not finished, and there are too many like it")
        self._handshake_over()
        self._socket.abort()

    def _complain(self, cause: str, text: str) -> None:
        if self._complaints.is_due(_ip_of(self._peer), cause, asyncio.get_running_loop().time()):
            logger.warning("closing the connection of %s: %s", self._peer, text)

    def _handshake_over(self) -> None:
        if self._on_handshake_over is not None:
            self._timer.cancel()
            on_over, self._on_handshake_over = self._on_handshake_over, None
            on_over()


def _ip_of(peer: str) -> str:
    return peer.rpartition(":")[0].strip("[]")
