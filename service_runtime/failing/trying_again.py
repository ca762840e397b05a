"""Retries with increasing pauses until success, for listeners whose messages can fail only because of an outage."""

from collections.abc import Callable
from typing import Final

_FIRST_PAUSE_S: Final = 0.5
_MAX_PAUSE_S: Final = 10.0


def try_until_done(is_done: Callable[[], bool], pause: Callable[[float], None]) -> None:
    """Calls `is_done` until it returns True. Between the calls it calls `pause` with a number of seconds, from 0.5 to 10.

    Raises the errors of both. `ConsumeContext.hold`, for example, raises an error when the consumer must release the message.
    """
    failures = 0
    while not is_done():
        failures += 1
        pause(pause_s(failures))


def pause_s(failures: int) -> float:
    """Returns the pause in seconds after this number of consecutive failures. It doubles from 0.5 s to 10 s."""
    return min(_FIRST_PAUSE_S * 2.0 ** (min(failures, 30) - 1), _MAX_PAUSE_S)
