"""Which names belong to a broken promise: those of its order, of the order's transaction, and of the transaction's messages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from rocketmq_broker.testing.simulation.page.told import ToldHappening

MAX_NEIGHBOURS: Final = 8
"""A name beside more names than this is common to many orders (a customer, a queue). It leads no further."""


def connected_keys(happenings: Sequence[ToldHappening], keys: Iterable[str]) -> frozenset[str]:
    """Returns the keys, and all names that happenings connect with them, over any number of steps.

    The given keys lead further however common they are.
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
