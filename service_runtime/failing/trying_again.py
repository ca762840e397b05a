"""Tries again, with pauses that grow, until it works: for a listener whose message nothing but an outage holds up."""

from collections.abc import Callable
from typing import Final

_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 10.0


def try_until_done(is_done: Callable[[], bool], pause: Callable[[float], None]) -> None:
    """Calls `is_done` until it says so, and between two calls `pause`, whose seconds double from 0.5 to 10.

    What either of both raises ends it: `ConsumeContext.hold` does so when the consumer has to let go of the message.
    """
    failures = 0
    while not is_done():
        failures += 1
        pause(pause_s(failures))


def pause_s(failures: int) -> float:
    """How long to wait after this number of failures in a row: doubles from 0.5 s to 10 s."""
    return min(_FIRST_PAUSE_S * 2.0 ** (min(failures, 30) - 1), _LONGEST_PAUSE_S)
