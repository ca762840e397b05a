"""Decides whether a process that ended is restarted, and when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_RESTARTS: Final = 10
"""The number of restarts in a row after which a process is given up."""
STEADY_LIFE_S: Final = 60.0
"""A process that ran at least this long resets the count of restarts in a row."""
BAD_SETTINGS: Final = 2
"""The exit status of a process with invalid settings, which a restart would not fix."""
_FIRST_PAUSE_S: Final = 0.5
_MAX_PAUSE_S: Final = 30.0


@dataclass(slots=True)
class Restarts:
    """Counts the restarts of one process."""

    in_a_row: int = 0

    def pause_s(self, status: int, lived_s: float) -> float | None:
        """Returns the seconds to wait before the next start, or None if the process is given up.

        `status` is the exit status, negative for a signal. Each status except 2 leads to a restart, also 3 (a disk failure
        damaged the store), because the next start recovers the store or reports why it cannot.
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
