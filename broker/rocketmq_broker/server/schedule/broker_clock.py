"""The broker's time: that of the wall clock, but it goes on steadily between two looks at that, and says when that has leapt.

An operator or a time service may set the wall clock by days, forward or back. Nothing that waits for a span of time may end
earlier or later for it. So spans are measured by steady time, which nobody sets; what must be a date, such as a store timestamp,
follows the wall clock; and who compares dates with now is told of each leap, before the first date after it is made.
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
    """Call it for the milliseconds since the epoch. Use it on one thread, and call `follow` several times a second."""

    def __init__(self, wall_ns: Callable[[], int], steady_ns: Callable[[], int]) -> None:
        """`wall_ns` is in nanoseconds since the epoch, `steady_ns` in nanoseconds since some moment or other."""
        self._wall_ns = wall_ns
        self.steady_ns = steady_ns
        """Nanoseconds since some moment or other."""
        # In nanoseconds: two clocks that are rounded to milliseconds make dates that are too early by one. Steady time is read
        # first, so that the time between the two readings makes no date early either.
        self._offset_ns = -steady_ns() + wall_ns()
        self._listeners: list[Callable[[int], None]] = []

    def __call__(self) -> int:
        """Milliseconds since the epoch."""
        return (self.steady_ns() + self._offset_ns) // _NS_IN_MS

    def steady_ms(self) -> int:
        """Milliseconds that count spans of time: setting the wall clock neither lengthens nor shortens what they measure."""
        return self.steady_ns() // _NS_IN_MS

    def date_of(self, steady_ms: int) -> int:
        """When that was, in milliseconds since the epoch, by the wall clock as it goes now."""
        return (steady_ms * _NS_IN_MS + self._offset_ns) // _NS_IN_MS

    def tell(self, listener: Callable[[int], None]) -> None:
        """Tells the listener of each leap: by how many milliseconds, less than 0 if the wall clock was set back."""
        self._listeners.append(listener)

    def follow(self) -> None:
        """Looks at the wall clock."""
        offset_ns = -self.steady_ns() + self._wall_ns()
        step_ms = round((offset_ns - self._offset_ns) / _NS_IN_MS)
        if abs(step_ms) > TOLERANCE_MS:
            logger.warning("the clock was set %s by %g s", "forward" if step_ms > 0 else "back", abs(step_ms) / 1000)
            for listener in self._listeners:
                listener(step_ms)
        self._offset_ns = offset_ns
