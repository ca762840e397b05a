"""The pauses between attempts."""

from __future__ import annotations


class Backoff:
    """A pause that doubles from the first length to the longest; a success resets it.

    With `in_outages_s` the pause grows again in a long outage: it is a tenth of all pauses so far, up to that length.
    Such an outage costs few attempts, and lasts at most a tenth longer for the one who waits.
    """

    def __init__(self, first_s: float, longest_s: float, *, in_outages_s: float = 0.0) -> None:
        """Takes the lengths in seconds."""
        self._first_s = first_s
        self._longest_s = longest_s
        self._in_outages_s = in_outages_s
        self._next_s = first_s
        self._paused_s = 0.0

    def next_pause_s(self) -> float:
        """Returns the pause after one more failure."""
        pause_s = max(self._next_s, min(self._paused_s / 10, self._in_outages_s))
        self._next_s = min(self._next_s * 2, self._longest_s)
        self._paused_s += pause_s
        return pause_s

    def succeeded(self) -> None:
        """Resets the pause to its first length."""
        self._next_s = self._first_s
        self._paused_s = 0.0
