"""Other protocols that peers use by mistake, recognized by the first bytes of a connection."""

from __future__ import annotations

from typing import Final

_TLS_VERSION_3: Final = 3
_TLS_ALERT, _TLS_HANDSHAKE = 0x15, 0x16
_HTTP: Final = frozenset(
    (b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC", b"HTTP", b"PRI ")
)  # HTTP begins an answer; PRI begins a connection of HTTP/2, for example gRPC's.
_MEANINGS: Final = {
    "TLS": "the peer speaks TLS, and this end does not: switch it off there, or on here (tls.server.mode, tls.enable)",
    "HTTP": "the peer speaks HTTP, not RocketMQ's remoting protocol: one of both has the wrong port",
}


def other_protocol(beginning: bytes) -> str | None:
    """Returns TLS or HTTP if the four bytes begin a connection of that protocol. No allowed frame begins with these bytes."""
    if beginning[0] in (_TLS_ALERT, _TLS_HANDSHAKE) and beginning[1] == _TLS_VERSION_3:
        return "TLS"
    return "HTTP" if beginning in _HTTP else None


def meaning(protocol: str) -> str:
    """Explains the use of that protocol, and its remedy."""
    return _MEANINGS[protocol]
