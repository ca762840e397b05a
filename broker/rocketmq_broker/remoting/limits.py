"""The bounds of one connection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rocketmq_broker.protocol.frame import MAX_FRAME_LENGTH

MAX_REQUEST_HEADER_LENGTH: Final = 512 * 1024
"""Bytes. The longest headers of requests hold a message's properties, 32 KiB, or a subscription. A binary one takes up to
40 ms to read. The answer to a batch is a header with all its ids, and may be much longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """The bounds of one connection."""

    max_frame_length: int = MAX_FRAME_LENGTH
    max_header_length: int = MAX_FRAME_LENGTH
    idle_timeout_s: float = 120.0
    """The time without traffic after which the connection is closed."""
    frame_timeout_s: float = 120.0
    """The time after which an incomplete frame closes the connection; up to twice as long may pass before it is noticed."""
    high_water_bytes: int = 1024 * 1024
    """Unsent bytes above which nothing is read, and no request already read is answered."""
    max_unsent_bytes: int = 64 * 1024 * 1024
    """Unsent bytes above which the connection is closed: the peer does not read."""
    close_timeout_s: float = 3.0
    """The time that closing waits for unsent bytes."""
