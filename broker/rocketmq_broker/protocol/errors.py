"""What can be wrong with what a peer sent."""

from typing import Final

UNREADABLE_JSON: Final = (ValueError, RecursionError)
"""What msgspec raises where bytes are not the JSON wanted: its own errors, bad UTF-8 in a string, nesting without end."""


class ProtocolError(Exception):
    """Base of the errors of this package."""


class FrameError(ProtocolError):
    """The bytes are no frame: too long, torn, or another protocol.

    Where the next one begins is unknown, so the connection must be closed.
    """


class OtherProtocol(FrameError):
    """The peer speaks TLS or HTTP."""

    def __init__(self, protocol: str, text: str) -> None:
        """`protocol` is its name, `text` what it means."""
        super().__init__(text)
        self.protocol = protocol


class HeaderError(ProtocolError):
    """A frame whose header lacks a field or has an illegal value in it.

    The connection is in order; answer the request with this text.
    """

    def __init__(self, field: str, text: str) -> None:
        """`field` is the name on the wire."""
        super().__init__(text)
        self.field = field


class BodyError(ProtocolError):
    """A frame whose body is not what its code says it should be.

    The connection is in order; answer the request with this text.
    """
