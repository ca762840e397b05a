"""The limits of one connection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rocketmq_broker.protocol.frame import MAX_FRAME_LENGTH

MAX_REQUEST_HEADER_LENGTH: Final = 512 * 1024
"""Maximum length of a request's header in bytes. The longest headers contain a message's properties (32 KiB) or a
subscription. Decoding a binary header of this length takes up to 40 ms. Response headers may be longer, because the answer to
a batch contains all message ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """The limits of one connection."""

    max_frame_length: int = MAX_FRAME_LENGTH
    max_header_length: int = MAX_FRAME_LENGTH
    idle_timeout_s: float = 120.0
    """The connection is closed after this time without traffic."""
    frame_timeout_s: float = 120.0
    """Timeout in seconds for an incomplete frame.

    The connection is closed after this time, or after twice this time at the latest.
    """
    high_water_bytes: int = 1024 * 1024
    """Above this number of unsent bytes, the connection does not read and does not handle requests."""
    max_unsent_bytes: int = 64 * 1024 * 1024
    """Above this number of unsent bytes, the connection is closed."""
    close_timeout_s: float = 3.0
    """The time for which closing waits until all data is sent."""
