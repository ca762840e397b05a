"""Finds the keys related to a violated promise: those of its order, of its transaction, and of the transaction's messages."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from rocketmq_broker.testing.simulation.page.world_report import ReportedEvent

MAX_NEIGHBOURS: Final = 8
"""The maximum number of neighbours of a key to follow. A customer or a queue has more, because many orders share it."""


def connected_keys(happenings: Sequence[ReportedEvent], keys: Iterable[str]) -> frozenset[str]:
    """Returns the given keys and all keys connected with them, directly or through other keys.

    The keys of one event are connected with each other.

    Keys with more than MAX_NEIGHBOURS neighbours are not followed, except the given keys.
    """
    neighbours: dict[str, set[str]] = defaultdict(set)
    for happening in happenings:
        for key in happening.keys:
            neighbours[key].update(happening.keys)
    found = set(keys)
    left = list(found)
    given = frozenset(found)
    while left:
        key = left.pop()
        beside = neighbours[key] - {key}
        if key in given or len(beside) <= MAX_NEIGHBOURS:
            left += beside - found
            found |= beside
    return frozenset(found)
