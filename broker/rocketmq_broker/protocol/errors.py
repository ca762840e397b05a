"""Exceptions that are raised when bytes cannot be decoded."""

from typing import Final

UNREADABLE_JSON: Final = (ValueError, RecursionError)
"""The errors that msgspec raises for bytes that are not the expected JSON, including invalid UTF-8 and deep nesting."""


class ProtocolError(Exception):
    """Base class of the errors of this package."""


class FrameError(ProtocolError):
    """Raised for an invalid frame. The frame is too long or malformed, or the peer uses another protocol.

    The connection must be closed, because the start of the next frame is unknown.
    """


class OtherProtocol(FrameError):
    """Raised if the peer uses TLS or HTTP instead of the remoting protocol."""

    def __init__(self, protocol: str, text: str) -> None:
        """Creates the error. `protocol` is the protocol's name, and `text` is the error message."""
        super().__init__(text)
        self.protocol = protocol


class HeaderError(ProtocolError):
    """Raised if a field of the header is missing or invalid.

    The connection remains usable. Respond to the request with the text of this error.
    """

    def __init__(self, field: str, text: str) -> None:
        """Creates the error. `field` is the field's name on the wire."""
        super().__init__(text)
        self.field = field


class BodyError(ProtocolError):
    """Raised if the body is invalid for the request or response code.

    The connection remains usable. Respond to the request with the text of this error.
    """
