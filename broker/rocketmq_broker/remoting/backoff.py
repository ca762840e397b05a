"""Exponential back-off between attempts."""


class Backoff:
    """Computes the pause before each attempt. The pause doubles from `first_s` up to `max_s`, and a success resets it.

    In a long outage, the pause grows further, up to `in_outages_s`. It is then a tenth of the sum of all pauses since the last
    success. A long outage therefore causes few attempts, and the pause delays the recovery by at most a
    tenth of the outage.
    """

    def __init__(self, first_s: float, max_s: float, *, in_outages_s: float = 0.0) -> None:
        """Creates a back-off. `first_s` and `max_s` are the first and the longest pause.

        `in_outages_s` is the longest pause in a long outage.
        """
        self._first_s = first_s
        self._max_s = max_s
        self._in_outages_s = in_outages_s
        self._next_s = first_s
        self._paused_s = 0.0

    def next_pause_s(self) -> float:
        """Returns the pause after another failure."""
        pause_s = max(self._next_s, min(self._paused_s / 10, self._in_outages_s))
        self._next_s = min(self._next_s * 2, self._max_s)
        self._paused_s += pause_s
        return pause_s

    def succeeded(self) -> None:
        """Resets the pause to its first length."""
        self._next_s = self._first_s
        self._paused_s = 0.0
