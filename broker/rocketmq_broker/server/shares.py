"""Divides a limit among several parties, such as connections or groups.

Each party may use a small share, even when the other parties have reached the limit.
"""

from collections import Counter
from collections.abc import Hashable
from typing import Final

FEW: Final = 32
"""The number of items that each party may always hold, even when other parties have reached the limit."""


def is_full(held: int, limit: int, of_party: int) -> bool:
    """Returns True if a party that holds `of_party` of the `held` items may not add another item.

    Once `limit` is reached, each party may still hold FEW items. The total never exceeds twice `limit`.
    """
    return held >= (limit if of_party >= FEW else 2 * limit)


class RequestsInProgress:
    """Counts the requests in progress of each party."""

    def __init__(self) -> None:
        self._of_party: Counter[Hashable] = Counter()
        self.count = 0

    def is_full_for(self, party: Hashable, limit: int) -> bool:
        """Returns True if the party may not start another request."""
        return is_full(self.count, limit, self._of_party.get(party, 0))

    def begin(self, party: Hashable) -> None:
        """Adds one request of the party."""
        self._of_party[party] += 1
        self.count += 1

    def end(self, party: Hashable) -> None:
        """Removes one request of the party."""
        self.count -= 1
        self._of_party[party] -= 1
        if not self._of_party[party]:
            del self._of_party[party]
