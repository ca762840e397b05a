"""How long to wait before the next attempt."""


class Backoff:
    """Doubles from the first pause to the longest; a success begins anew."""

    def __init__(self, first_s: float, longest_s: float) -> None:
        """Both in seconds."""
        self._first_s = first_s
        self._longest_s = longest_s
        self._next_s = first_s

    def next_pause_s(self) -> float:
        """The pause after one more failure."""
        pause_s = self._next_s
        self._next_s = min(pause_s * 2, self._longest_s)
        return pause_s

    def succeeded(self) -> None:
        """The next failure is a first one again."""
        self._next_s = self._first_s
