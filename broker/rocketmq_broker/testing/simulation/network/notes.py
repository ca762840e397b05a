"""The kinds of events that the network records, and the callbacks of observers and faults."""

from collections.abc import Callable
from enum import StrEnum


class NetworkNote(StrEnum):
    """The kinds of events that the network records."""

    CUT = "cut"
    CUT_HALF_WAY = "cut-half-way"
    HALF_WRITTEN = "half-written"
    """A frame was cut in the middle."""
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
"""A callback with the addresses of the writing and the reading end, such as "10.0.0.3:50001", and the written bytes."""

Fired = Callable[[], object]
"""A callback for the first effect of a fault."""


def nothing() -> None:
    """Ignores the effect of a fault."""
