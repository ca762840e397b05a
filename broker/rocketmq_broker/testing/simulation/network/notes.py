"""What the network notes, and how a fault says that it has had an effect."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class NetworkNote(StrEnum):
    """The kinds of happenings that the network notes."""

    CUT = "cut"
    CUT_HALF_WAY = "cut-half-way"
    HALF_WRITTEN = "half-written"
    """A frame was cut half-way."""
    BLOCKED = "blocked"
    UNBLOCKED = "unblocked"
    LOSE_FRAMES = "lose-frames"
    FRAME_LOST = "frame-lost"
    SLOW = "slow"
    FAST = "fast"
    IN_PIECES = "in-pieces"
    IN_ONE_PIECE = "in-one-piece"
    CONNECTIONS_OF_DEAD = "connections-of-dead"
    FROZEN = "frozen"
    THAWED = "thawed"


Observer = Callable[[str, str, bytes], object]
"""Gets the names of sender and receiver, and what is written."""

Fired = Callable[[], object]
"""Called once, when a fault has its first effect."""


def nothing() -> None:
    """Takes no note of a fault's effect."""
