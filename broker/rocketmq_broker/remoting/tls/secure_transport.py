"""A transport with TLS. It has the interface of the socket's transport, so connections work with both transports."""

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
    """Encrypts output, and passes it to the socket's transport."""

    def __init__(self, socket: asyncio.Transport, tunnel: TlsTunnel) -> None:
        super().__init__()
        self._socket = socket
        self._tunnel = tunnel

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Sends the data, or buffers it until the handshake is done."""
        self._tunnel.send(bytes(data))
        self.flush()

    def flush(self) -> None:
        """Passes the tunnel's output to the socket."""
        if (data := self._tunnel.take_outgoing()) and not self._socket.is_closing():
            self._socket.write(data)

    def close(self) -> None:
        """Ends TLS, and closes the socket when all data is sent."""
        if not self._socket.is_closing():
            self._tunnel.end()
            self.flush()
        self._socket.close()

    def abort(self) -> None:
        """Closes the socket at once."""
        self._socket.abort()

    def is_closing(self) -> bool:
        """Returns True if the transport is closed or being closed."""
        return self._socket.is_closing()

    def pause_reading(self) -> None:
        """Stops reading from the socket."""
        self._socket.pause_reading()

    def resume_reading(self) -> None:
        """Starts reading from the socket again."""
        self._socket.resume_reading()

    def get_write_buffer_size(self) -> int:
        """Returns the number of bytes that the socket has not sent."""
        return self._socket.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Returns information about the socket from its transport."""
        return self._socket.get_extra_info(name, default)


class SecureProtocol(asyncio.Protocol):
    """Decrypts the socket's input, and passes it to the connection."""

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
        """Starts the handshake, with a timeout of 10 s. `handshakes` may end it earlier."""
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
        """Decrypts the bytes, and passes them to the connection."""
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
        """Passes the end of input to the connection."""
        return self._above.eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        """Ends the handshake, and notifies the connection that the socket is closed."""
        if not self._tunnel.is_open and not self._has_failed:
            self._complain("left", "the peer closed it during the TLS handshake: it may not trust the certificate")
        self._handshake_over()
        self._above.connection_lost(error)

    def pause_writing(self) -> None:
        """Passes the call to the connection when the peer reads too slowly."""
        self._above.pause_writing()

    def resume_writing(self) -> None:
        """Passes the call to the connection when the peer has read the output."""
        self._above.resume_writing()

    def _fail(self, error: ssl.SSLError) -> None:
        self._has_failed = True
        self._transport.flush()  # sends the alert with the reason
        what = "invalid TLS record" if self._tunnel.is_open else "TLS handshake failed"
        self._complain(words_of(error), f"{what}: {words_of(error)}")
        self._socket.close()

    def _give_up(self) -> None:
        self._has_failed = True
        self._complain("late", f"no TLS handshake within {HANDSHAKE_TIMEOUT_S:g} s")
        self._socket.abort()

    def _crowded_out(self) -> None:
        self._has_failed = True
        self._complain("crowded out", "its TLS handshake is not finished, and too many are unfinished")
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
