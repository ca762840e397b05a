"""Shares: what all parties fill together has room for each of them, whatever the others hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Final

FEW: Final = 32
"""So many things each party may hold of what others have filled."""


def is_full(held: int, most: int, of_party: int) -> bool:
    """Returns whether a party that holds `of_party` of `held` things may have no other one.

    From `most` on, a party still gets its first FEW. So it takes very many parties to stop one, and twice `most` is the end.
    """
    return held >= (most if of_party >= FEW else 2 * most)


class UnderWay:
    """A counter of work under way, by party."""

    def __init__(self) -> None:
        self._of_party: Counter[Hashable] = Counter()
        self.count = 0

    def is_full_for(self, party: Hashable, most: int) -> bool:
        """Returns whether the party may begin no other one."""
        return is_full(self.count, most, self._of_party.get(party, 0))

    def begin(self, party: Hashable) -> None:
        """Counts one more of a party."""
        self._of_party[party] += 1
        self.count += 1

    def end(self, party: Hashable) -> None:
        """Counts one less of a party."""
        self.count -= 1
        self._of_party[party] -= 1
        if not self._of_party[party]:
            del self._of_party[party]
