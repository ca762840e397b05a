"""The decision whether a process that ended is started again, and when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_RESTARTS: Final = 10
"""Restarts in a row, without a steady life between them, before a process is given up."""
STEADY_LIFE_S: Final = 60.0
"""A process that lived so long had a good start: its next end is the first of a new row."""
BAD_SETTINGS: Final = 2
"""The exit status of a process whose settings are wrong: a restart changes nothing."""
_FIRST_PAUSE_S: Final = 0.5
_MAX_PAUSE_S: Final = 30.0


@dataclass(slots=True)
class Restarts:
    """The restarts of one process, counted."""

    in_a_row: int = 0

    def pause_s(self, status: int, lived_s: float) -> float | None:
        """Returns the seconds to wait before the next start, or None if the process is given up.

        `status` is the exit status, negative for a signal. Each status but 2 is worth a restart, also 3 (the disk broke the
        store): the next start recovers the store, or says why it cannot.
        """
        if lived_s >= STEADY_LIFE_S:
            self.in_a_row = 0
        if status == BAD_SETTINGS or self.in_a_row >= MAX_RESTARTS:
            return None
        self.in_a_row += 1
        return float(min(_FIRST_PAUSE_S * 2 ** (self.in_a_row - 1), _MAX_PAUSE_S))


def ending_text(status: int, signal_name: str = "") -> str:
    """Returns how a process ended, in words."""
    if status < 0:
        return f"was ended by {signal_name or f'signal {-status}'}"
    if status == 0:
        return "ended by itself, or because somebody told it to"
    return f"ended with exit status {status}"
