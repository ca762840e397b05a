"""Whether a worker takes tasks: told by the tasks themselves, not by a loop that turns."""

from collections.abc import Callable


class Taking:
    """Counts the tasks that a worker takes, and for how long it has taken none although some wait."""

    def __init__(self, *, now_s: Callable[[], float]) -> None:
        """`now_s` is a clock that is never set back."""
        self._now_s = now_s
        self._taken = 0
        self._taken_s: float | None = None
        self._none_since_s: float | None = None

    @property
    def tasks(self) -> int:
        """How many tasks it has taken."""
        return self._taken

    @property
    def taken_s_ago(self) -> float | None:
        """When it took the last one; None if it has taken none."""
        return None if self._taken_s is None else self._now_s() - self._taken_s

    @property
    def none_for_s(self) -> float:
        """Since the first look that found tasks waiting, if every look since has, and it has taken none; else 0."""
        return 0.0 if self._none_since_s is None else self._now_s() - self._none_since_s

    def take(self) -> None:
        """It has taken a task."""
        self._taken += 1
        self._taken_s, self._none_since_s = self._now_s(), None

    def look(self, waiting: int | None) -> None:
        """So many tasks wait for a worker; None if Redis does not say."""
        if not waiting:
            self._none_since_s = None
        elif self._none_since_s is None:
            self._none_since_s = self._now_s()
