"""The activity of a worker, judged by its tasks and not by a running loop."""

from collections.abc import Callable


class Taking:
    """Counts the tasks that a worker takes, and the time without tasks taken although some wait."""

    def __init__(self, *, now_s: Callable[[], float]) -> None:
        """`now_s` is a clock that is never set back."""
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
        """The seconds since the last task was taken; None if none was."""
        return None if self._taken_s is None else self._now_s() - self._taken_s

    @property
    def none_for_s(self) -> float:
        """The seconds since the first of an unbroken series of checks that found waiting tasks, while it took none; else 0."""
        return 0.0 if self._none_since_s is None else self._now_s() - self._none_since_s

    def take(self) -> None:
        """Counts a taken task."""
        self._taken += 1
        self._taken_s, self._none_since_s = self._now_s(), None

    def look(self, waiting: int | None) -> None:
        """Notes how many tasks wait for a worker; None if Redis does not say."""
        if not waiting:
            self._none_since_s = None
        elif self._none_since_s is None:
            self._none_since_s = self._now_s()
