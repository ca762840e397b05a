"""How much one connection may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rocketmq_broker.protocol.frame import MAX_FRAME_LENGTH

MAX_REQUEST_HEADER_LENGTH: Final = 512 * 1024
"""Bytes. The longest headers of requests hold a message's properties, 32 KiB, or a subscription. A binary one is read in 40 ms
then. The answer to a batch is a header with all its ids, and may be much longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """How much one connection may take."""

    max_frame_length: int = MAX_FRAME_LENGTH
    max_header_length: int = MAX_FRAME_LENGTH
    idle_timeout_s: float = 120.0
    """A connection on which nothing moved for so long is closed."""
    frame_timeout_s: float = 120.0
    """A connection whose frame is not whole after so long is closed; it may take twice as long until that is seen."""
    high_water_bytes: int = 1024 * 1024
    """With more than this unsent nothing more is read, and no request is answered that was read before."""
    max_unsent_bytes: int = 64 * 1024 * 1024
    """With more than this unsent the connection is closed: the peer does not read."""
    close_timeout_s: float = 3.0
    """How long closing waits for what is unsent."""
