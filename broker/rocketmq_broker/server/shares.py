"""Shares: what all parties fill together has room for each of them, whatever the others hold."""

from __future__ import annotations

from typing import Final

FEW: Final = 32
"""So many things each party may hold of what others have filled."""


def is_full(held: int, most: int, of_party: int) -> bool:
    """Returns whether a party that holds `of_party` of `held` things may have no other one.

    From `most` on, a party still gets its first FEW. So it takes very many parties to stop one, and twice `most` is the end.
    """
    return held >= (most if of_party >= FEW else 2 * most)
