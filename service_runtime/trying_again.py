"""Tries again, with pauses that grow, until it works: for a listener whose message nothing but an outage holds up."""

from collections.abc import Callable
from typing import Final

_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 10.0


def try_until_done(is_done: Callable[[], bool], pause: Callable[[float], None]) -> None:
    """Calls `is_done` until it says so, and between two calls `pause`, whose seconds double from 0.5 to 10.

    What either of both raises ends it: `ConsumeContext.hold` does so when the consumer has to let go of the message.
    """
    pause_s = _FIRST_PAUSE_S
    while not is_done():
        pause(pause_s)
        pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
