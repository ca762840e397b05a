"""Implements the broker's clock, which follows the system time and is advanced by a monotonic clock between two checks.

An operator or a time service may move the system time forward or backward by days. Such a step must not change the length of a
wait, so durations are measured with the monotonic clock. Dates, such as store timestamps, follow the system time. Listeners that
compare dates with the current time are notified of a step before the clock returns the first date after the step.
"""

import logging
from collections.abc import Callable
from typing import Final

TOLERANCE_MS: Final = 1_000
"""The maximum difference, in milliseconds, that is not a step. Slewing or a late check can cause such a difference."""

_NS_IN_MS: Final = 1_000_000

logger = logging.getLogger(__name__)


class BrokerClock:
    """A callable clock that returns milliseconds since the epoch. Not thread-safe. Call `follow` several times a second."""

    def __init__(self, wall_ns: Callable[[], int], steady_ns: Callable[[], int]) -> None:
        """Starts the clock. `wall_ns` returns nanoseconds since the epoch. `steady_ns` is a monotonic clock in nanoseconds."""
        self._wall_ns = wall_ns
        self.steady_ns = steady_ns
        """The monotonic clock, in nanoseconds."""
        # Nanoseconds, because clocks rounded to milliseconds would make dates 1 ms too early. The monotonic clock is read
        # first, so that the time between the two readings does not make dates too early either.
        self._offset_ns = -steady_ns() + wall_ns()
        self._listeners: list[Callable[[int], None]] = []

    def __call__(self) -> int:
        """Returns milliseconds since the epoch."""
        return (self.steady_ns() + self._offset_ns) // _NS_IN_MS

    def steady_ms(self) -> int:
        """Returns monotonic milliseconds for measuring durations. The result does not change when the system time is set."""
        return self.steady_ns() // _NS_IN_MS

    def date_of(self, steady_ms: int) -> int:
        """Converts a monotonic time to milliseconds since the epoch, based on the current system time."""
        return (steady_ms * _NS_IN_MS + self._offset_ns) // _NS_IN_MS

    def on_step(self, listener: Callable[[int], None]) -> None:
        """Registers a listener for steps of the system time.

        The listener is called with the size of the step in milliseconds, which is negative for a step backward.
        """
        self._listeners.append(listener)

    def follow(self) -> None:
        """Checks the system time, and notifies the listeners of a step."""
        offset_ns = -self.steady_ns() + self._wall_ns()
        step_ms = round((offset_ns - self._offset_ns) / _NS_IN_MS)
        if abs(step_ms) > TOLERANCE_MS:
            logger.warning("the system time was set %s by %g s", "forward" if step_ms > 0 else "back", abs(step_ms) / 1000)
            for listener in self._listeners:
                listener(step_ms)
        self._offset_ns = offset_ns
