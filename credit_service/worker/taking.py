"""Measures the activity of a worker by the tasks that it takes. A running event loop does not prove that it takes any."""

from collections.abc import Callable


class Taking:
    """Counts the tasks that a worker takes, and measures for how long it has taken none although some wait."""

    def __init__(self, *, now_s: Callable[[], float]) -> None:
        """`now_s` is a monotonic clock in seconds."""
        self._now_s = now_s
        self._taken = 0
        self._taken_s: float | None = None
        self._none_since_s: float | None = None

    @property
    def tasks(self) -> int:
        """The number of tasks taken."""
        return self._taken

    @property
    def taken_s_ago(self) -> float | None:
        """The time in seconds since the last task was taken; None if none was."""
        return None if self._taken_s is None else self._now_s() - self._taken_s

    @property
    def none_for_s(self) -> float:
        """The time in seconds that tasks have waited while the worker took none, as seen by `look`; 0 if none waits."""
        return 0.0 if self._none_since_s is None else self._now_s() - self._none_since_s

    def take(self) -> None:
        """Counts a taken task."""
        self._taken += 1
        self._taken_s, self._none_since_s = self._now_s(), None

    def look(self, waiting: int | None) -> None:
        """Records the number of tasks that wait for a worker; None if it is unknown."""
        if not waiting:
            self._none_since_s = None
        elif self._none_since_s is None:
            self._none_since_s = self._now_s()
