"""The broker's time: the wall clock, advanced by steady time between two checks, with a notice of each leap.

An operator or a time service may set the wall clock by days, forward or back. That must not lengthen or shorten any wait. So
durations are measured by steady time, which nobody sets. Dates, such as store timestamps, follow the wall clock. Listeners that
compare dates with now learn of each leap before the first date after it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

TOLERANCE_MS: Final = 1_000
"""The wall clock may differ by so much between two looks without having leapt: it is slewed, and looks come late."""

_NS_IN_MS: Final = 1_000_000

logger = logging.getLogger(__name__)


class BrokerClock:
    """A clock: call it for milliseconds since the epoch. Use it on one thread, and call `follow` several times a second."""

    def __init__(self, wall_ns: Callable[[], int], steady_ns: Callable[[], int]) -> None:
        """`wall_ns` returns nanoseconds since the epoch, `steady_ns` nanoseconds since any fixed moment."""
        self._wall_ns = wall_ns
        self.steady_ns = steady_ns
        """Nanoseconds since some moment or other."""
        # In nanoseconds: two clocks that are rounded to milliseconds make dates that are too early by one. Steady time is read
        # first, so that the time between the two readings makes no date early either.
        self._offset_ns = -steady_ns() + wall_ns()
        self._listeners: list[Callable[[int], None]] = []

    def __call__(self) -> int:
        """Returns milliseconds since the epoch."""
        return (self.steady_ns() + self._offset_ns) // _NS_IN_MS

    def steady_ms(self) -> int:
        """Returns milliseconds for measuring durations: setting the wall clock does not change them."""
        return self.steady_ns() // _NS_IN_MS

    def date_of(self, steady_ms: int) -> int:
        """Converts a steady time to milliseconds since the epoch, by the current wall clock."""
        return (steady_ms * _NS_IN_MS + self._offset_ns) // _NS_IN_MS

    def tell(self, listener: Callable[[int], None]) -> None:
        """Registers a listener to leaps. It gets their milliseconds, negative if the wall clock was set back."""
        self._listeners.append(listener)

    def follow(self) -> None:
        """Checks the wall clock, and tells the listeners of a leap."""
        offset_ns = -self.steady_ns() + self._wall_ns()
        step_ms = round((offset_ns - self._offset_ns) / _NS_IN_MS)
        if abs(step_ms) > TOLERANCE_MS:
            logger.warning("the clock was set %s by %g s", "forward" if step_ms > 0 else "back", abs(step_ms) / 1000)
            for listener in self._listeners:
                listener(step_ms)
        self._offset_ns = offset_ns
