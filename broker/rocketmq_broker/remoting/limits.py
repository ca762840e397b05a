"""The limits of one connection: lengths, timeouts and unsent bytes."""

from dataclasses import dataclass
from typing import Final

from rocketmq_broker.protocol.frame import MAX_FRAME_LENGTH

MAX_REQUEST_HEADER_LENGTH: Final = 512 * 1024
"""The maximum length of a request's header in bytes. The longest headers contain a message's properties (32 KiB) or a
subscription. Decoding a binary header of this length takes up to 40 ms. Response headers may be longer, because the answer to
a batch contains all message ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """The limits of one connection: lengths, timeouts and unsent bytes."""

    max_frame_length: int = MAX_FRAME_LENGTH
    max_header_length: int = MAX_FRAME_LENGTH
    idle_timeout_s: float = 120.0
    """The time in seconds without traffic after which the connection is closed."""
    frame_timeout_s: float = 120.0
    """The timeout in seconds for an incomplete frame.

    The connection is closed at the latest after twice this time, because the time is checked at intervals.
    """
    high_water_bytes: int = 1024 * 1024
    """The number of unsent bytes above which the connection pauses. It then reads nothing and handles no requests."""
    max_unsent_bytes: int = 64 * 1024 * 1024
    """The number of unsent bytes above which the connection is closed."""
    close_timeout_s: float = 3.0
    """The maximum time in seconds that closing waits until all data is sent."""
