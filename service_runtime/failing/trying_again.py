"""Retries with increasing pauses until success, for listeners whose messages can fail only because of an outage."""

from collections.abc import Callable
from typing import Final

_FIRST_PAUSE_S: Final = 0.5
_MAX_PAUSE_S: Final = 10.0


def try_until_done(is_done: Callable[[], bool], pause: Callable[[float], None]) -> None:
    """Calls `is_done` until it returns True. Between calls, calls `pause` with a number of seconds, from 0.5 to 10.

    Raises the errors of `is_done` and `pause`. `ConsumeContext.hold`, for example, raises an error when the consumer must release
    the message.
    """
    pause_s = _FIRST_PAUSE_S
    while not is_done():
        pause(pause_s)
        pause_s = min(2 * pause_s, _MAX_PAUSE_S)
