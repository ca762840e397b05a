"""Logs refused requests.

Logs only the first request of each kind and counts the others, so that many attempts do not fill the disk.
"""

import logging
from collections import Counter
from typing import Final

_MAX_KINDS: Final = 100
_LOOKS_BETWEEN_SUMMARIES: Final = 60

logger = logging.getLogger(__name__)


class RefusalLog:
    """Logs one line for each address and reason, at most 100 per minute. Logs the number of repetitions once a minute."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._others = 0
        self._looks = 0

    def note(self, ip: str, code: int, reason: str) -> None:
        """Records a refused request."""
        kind = (ip, reason[:200])
        if kind in self._counts:
            self._counts[kind] += 1
        elif len(self._counts) < _MAX_KINDS:
            self._counts[kind] = 0
            logger.warning("refused a request with code %d from %s: %r", code, ip, kind[1])
        else:
            self._others += 1

    def summarize(self) -> None:
        """Logs the number of repetitions once a minute, and resets it. Call this method every second."""
        self._looks += 1
        if self._looks < _LOOKS_BETWEEN_SUMMARIES:
            return
        self._looks = 0
        again = sum(self._counts.values())
        if again or self._others:
            logger.warning("refused %d more requests of the kinds above, and %d of other kinds", again, self._others)
        self._counts.clear()
        self._others = 0
