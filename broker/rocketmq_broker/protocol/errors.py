"""The errors of peers' bytes."""

from typing import Final

UNREADABLE_JSON: Final = (ValueError, RecursionError)
"""msgspec's errors for bytes that are not the expected JSON: its own, bad UTF-8 in a string, endless nesting."""


class ProtocolError(Exception):
    """Base of the errors of this package."""


class FrameError(ProtocolError):
    """Bytes that are no frame: too long, torn, or another protocol.

    The start of the next one is unknown, so the connection must be closed.
    """


class OtherProtocol(FrameError):
    """The start of a connection in TLS or HTTP."""

    def __init__(self, protocol: str, text: str) -> None:
        """`protocol` is the protocol's name, `text` the explanation."""
        super().__init__(text)
        self.protocol = protocol


class HeaderError(ProtocolError):
    """A frame whose header lacks a field or has an illegal value.

    The connection is in order; answer the request with this text.
    """

    def __init__(self, field: str, text: str) -> None:
        """`field` is the field's name on the wire."""
        super().__init__(text)
        self.field = field


class BodyError(ProtocolError):
    """A frame whose body does not fit its code.

    The connection is in order; answer the request with this text.
    """
