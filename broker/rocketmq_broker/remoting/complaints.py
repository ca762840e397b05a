"""Limits warnings about peers to one per minute for each peer and cause."""

from typing import Final

_INTERVAL_S: Final = 60.0
_MAX_REMEMBERED: Final = 1000


class Complaints:
    """Records when a warning was last logged, keyed by peer and cause."""

    def __init__(self) -> None:
        self._made_s: dict[tuple[str, str], float] = {}

    def is_due(self, host: str, cause: str, now_s: float) -> bool:
        """Returns True, and records the time, if a warning may be logged now. `now_s` is the time of a monotonic clock."""
        before_s = self._made_s.get((host, cause))
        if before_s is not None and now_s - before_s < _INTERVAL_S:
            return False
        if len(self._made_s) >= _MAX_REMEMBERED:
            self._made_s.clear()
        self._made_s[host, cause] = now_s
        return True
