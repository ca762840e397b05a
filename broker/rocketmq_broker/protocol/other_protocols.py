"""Examines the first bytes of a connection, to detect peers that use another protocol by mistake."""

from typing import Final

_TLS_VERSION_3: Final = 3
_TLS_ALERT, _TLS_HANDSHAKE = 0x15, 0x16
_HTTP: Final = frozenset(
    (b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC", b"HTTP", b"PRI ")
)  # responses start with HTTP, and connections of HTTP/2, such as gRPC's, with PRI
_MEANINGS: Final = {
    "TLS": "the peer uses TLS, but it is not enabled here: enable it (tls.server.mode, tls.enable), or disable it at the peer",
    "HTTP": "the peer uses HTTP instead of RocketMQ's remoting protocol: check the port",
}


def other_protocol(beginning: bytes) -> str | None:
    """Returns "TLS" or "HTTP" if a connection of this protocol can start with these four bytes, otherwise None.

    No valid frame starts with the bytes of either protocol.
    """
    if beginning[0] in (_TLS_ALERT, _TLS_HANDSHAKE) and beginning[1] == _TLS_VERSION_3:
        return "TLS"
    return "HTTP" if beginning in _HTTP else None


def meaning(protocol: str) -> str:
    """Returns a text that explains which protocol the peer uses, and how to correct the mistake."""
    return _MEANINGS[protocol]
