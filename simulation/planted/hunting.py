"""The hunt for planted bugs: plays one world after the other with each of them, until a world breaks a promise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from simulation.planted.all_planted import planted

FirstBroken = Callable[[int], str | None]
"""Plays the world of a seed; returns the promise that it breaks first, or None."""
OnWorld = Callable[[int, list[str]], object]
"""Told of the number of worlds so far, and of the bugs that none of them has found."""


@dataclass(frozen=True, slots=True)
class HuntedBug:
    """A planted bug that a world has found."""

    name: str
    worlds: int
    """How many worlds were played with it."""
    seed: int
    """Of the world that found it."""
    promise: str


def hunt(
    names: Iterable[str], seeds: Iterable[int], first_broken: FirstBroken, on_world: OnWorld = lambda worlds, left: None
) -> Iterator[HuntedBug]:
    """Yields the bugs as they are found, each seed being tried with all bugs that are left.

    `on_world` is told how many worlds were played, and which bugs are left, after each of them.

    A world that breaks a promise without any bug is left out. The caller counts as missed what is not yielded.
    """
    left, worlds = list(names), 0
    for seed in seeds:
        if not left:
            return
        if first_broken(seed) is not None:
            continue
        worlds += 1
        for name in list(left):
            with planted(name):
                promise = first_broken(seed)
            if promise is not None:
                left.remove(name)
                yield HuntedBug(name, worlds, seed, promise)
        on_world(worlds, list(left))
