"""The pauses between attempts."""


class Backoff:
    """A pause that doubles from the first length to the longest; a success resets it."""

    def __init__(self, first_s: float, longest_s: float) -> None:
        """Takes both lengths in seconds."""
        self._first_s = first_s
        self._longest_s = longest_s
        self._next_s = first_s

    def next_pause_s(self) -> float:
        """Returns the pause after one more failure."""
        pause_s = self._next_s
        self._next_s = min(pause_s * 2, self._longest_s)
        return pause_s

    def succeeded(self) -> None:
        """Resets the pause to its first length."""
        self._next_s = self._first_s
