"""Decides whether and when to restart a process that has ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_RESTARTS: Final = 10
"""The maximum number of consecutive restarts. If the process ends again after these restarts, it is not restarted."""
STEADY_LIFE_S: Final = 60.0
"""The running time in seconds after which a process counts as stable. Its number of consecutive restarts is then reset to 0."""
BAD_SETTINGS: Final = 2
"""The exit status of a process with invalid settings, which a restart would not fix."""
_FIRST_PAUSE_S: Final = 0.5
_MAX_PAUSE_S: Final = 30.0


@dataclass(slots=True)
class Restarts:
    """Counts the restarts of one process."""

    in_a_row: int = 0

    def pause_s(self, status: int, lived_s: float) -> float | None:
        """Returns the seconds to wait before the next start, or None if the process must not be restarted.

        `status` is the exit status, negative for a signal. The process is restarted after each status except 2. Status 3 means
        that a disk failure damaged the store. The next start then recovers the store, or reports why this is impossible.
        """
        if lived_s >= STEADY_LIFE_S:
            self.in_a_row = 0
        if status == BAD_SETTINGS or self.in_a_row >= MAX_RESTARTS:
            return None
        self.in_a_row += 1
        return float(min(_FIRST_PAUSE_S * 2 ** (self.in_a_row - 1), _MAX_PAUSE_S))


def ending_text(status: int, signal_name: str = "") -> str:
    """Returns a text that describes how a process ended."""
    if status < 0:
        return f"was killed by {signal_name or f'signal {-status}'}"
    if status == 0:
        return "ended normally (exit status 0)"
    return f"ended with exit status {status}"
