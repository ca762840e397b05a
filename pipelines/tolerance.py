"""Which classes of finding make a reconciliation fail."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pipelines.judging.classes import CONSISTENT, Finding
from pipelines.judging.totals import FindingTotal


@dataclass(frozen=True, slots=True)
class Tolerance:
    """All but the healthy classes fail, unless they are allowed; healthy ones fail if they are named."""

    allowed: frozenset[Finding] = frozenset()
    failing: frozenset[Finding] = frozenset()

    def fails(self, total: FindingTotal) -> bool:
        """Whether the books are wrong by this total."""
        if not total.count:
            return False
        return total.finding in self.failing or (total.finding not in CONSISTENT and total.finding not in self.allowed)

    def is_consistent(self, totals: Iterable[FindingTotal]) -> bool:
        """Whether nothing was found that fails."""
        return not any(self.fails(total) for total in totals)
