"""Refused requests in the log: the first of each kind, then how many; who knocks a thousand times fills no disk."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Final

_MOST_KINDS: Final = 100
_LOOKS_BETWEEN_SUMMARIES: Final = 60

logger = logging.getLogger(__name__)


class RefusalLog:
    """One line for each address and reason, at most 100 of them a minute; what came more often is counted once a minute."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._others = 0
        self._looks = 0

    def note(self, ip: str, code: int, reason: str) -> None:
        """A request was refused."""
        kind = (ip, reason[:200])
        if kind in self._counts:
            self._counts[kind] += 1
        elif len(self._counts) < _MOST_KINDS:
            self._counts[kind] = 0
            logger.warning("refused a request of code %d from %s: %r", code, ip, kind[1])
        else:
            self._others += 1

    def summarize(self) -> None:
        """Call it each second: once a minute it says what came again, and begins anew."""
        self._looks += 1
        if self._looks < _LOOKS_BETWEEN_SUMMARIES:
            return
        self._looks = 0
        again = sum(self._counts.values())
        if again or self._others:
            logger.warning("refused %d more requests like those, and %d of others", again, self._others)
        self._counts.clear()
        self._others = 0
