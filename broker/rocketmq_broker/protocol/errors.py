"""Exceptions that are raised when bytes cannot be decoded."""

from typing import Final

UNREADABLE_JSON: Final = (ValueError, RecursionError)
"""The errors that msgspec raises for bytes that are not the expected JSON, including invalid UTF-8 and deep nesting."""


class ProtocolError(Exception):
    """Base class of the errors of this package."""


class FrameError(ProtocolError):
    """The bytes are not a valid frame: the frame is too long or malformed, or the peer uses another protocol.

    The connection must be closed, because the start of the next frame is unknown.
    """


class OtherProtocol(FrameError):
    """The peer uses TLS or HTTP instead of the remoting protocol."""

    def __init__(self, protocol: str, text: str) -> None:
        """`protocol` is the protocol's name. `text` is the error message."""
        super().__init__(text)
        self.protocol = protocol


class HeaderError(ProtocolError):
    """A field of the header is missing or invalid.

    The connection remains usable. Answer the request with the text of this error.
    """

    def __init__(self, field: str, text: str) -> None:
        """`field` is the field's name on the wire."""
        super().__init__(text)
        self.field = field


class BodyError(ProtocolError):
    """The body is not valid for the request or response code.

    The connection remains usable. Answer the request with the text of this error.
    """
