"""Complaints about peers: each once a minute, however often a peer gives cause."""

from __future__ import annotations

from typing import Final

_INTERVAL_S: Final = 60.0
_MOST_REMEMBERED: Final = 1000


class Complaints:
    """Remembers who was complained about when."""

    def __init__(self) -> None:
        self._made_s: dict[tuple[str, str], float] = {}

    def is_due(self, host: str, cause: str, now_s: float) -> bool:
        """Whether to complain now; if so, it counts as done. `now_s` are seconds of a clock that never goes back."""
        before_s = self._made_s.get((host, cause))
        if before_s is not None and now_s - before_s < _INTERVAL_S:
            return False
        if len(self._made_s) >= _MOST_REMEMBERED:
            self._made_s.clear()
        self._made_s[host, cause] = now_s
        return True
