"""Converts between plain and encrypted bytes of a TLS connection. It uses no socket and no event loop."""

import ssl
from contextlib import suppress
from typing import Final

_AT_A_TIME: Final = 256 * 1024


class TlsTunnel:
    """One side of a TLS connection.

    After each call of `receive`, `send` or `end`, send the result of `take_outgoing` to the peer.
    """

    def __init__(self, context: ssl.SSLContext, *, server_side: bool) -> None:
        self.is_open = False
        """True if the handshake is done."""
        self.is_ended = False
        """True if the peer has ended its side of the TLS connection (close_notify)."""
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=server_side)
        self._unsent: list[bytes] = []

    def receive(self, data: bytes) -> bytes:
        """Decrypts data from the peer. Returns the plain bytes of the records that are complete.

        Raises ssl.SSLError. `take_outgoing` then returns the alert for the peer.
        """
        self._incoming.write(data)
        if not self.is_open and not self._shake_hands():
            return b""
        parts: list[bytes] = []
        try:
            while part := self._tls.read(_AT_A_TIME):
                parts.append(part)
            self.is_ended = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.is_ended = True
        return b"".join(parts)

    def send(self, data: bytes) -> None:
        """Encrypts the bytes, or buffers them until the handshake is done."""
        if not self.is_open:
            self._unsent.append(data)
            return
        rest = memoryview(data)
        while rest:
            rest = rest[self._tls.write(rest) :]

    def end(self) -> None:
        """Ends this side of the TLS connection with a close_notify message."""
        if not self.is_open:
            return
        with suppress(ssl.SSLError):  # the peer has not ended its output, or has closed the connection
            self._tls.unwrap()

    def take_outgoing(self) -> bytes:
        """Removes and returns the output for the socket."""
        return self._outgoing.read()

    def _shake_hands(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        self.is_open = True
        for data in self._unsent:
            self.send(data)
        self._unsent.clear()
        return True
