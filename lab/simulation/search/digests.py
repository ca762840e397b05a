"""Checks that simulations are reproducible: the same seed gives the same digest in new interpreters with different hash seeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from lab.simulation.search.processes import PlayingProcesses
from lab.simulation.search.worlds import WorldEnd, Worlds

_HASH_SEEDS: Final = ("1", "20261123")


class DifferentDigests(NamedTuple):
    """A seed whose simulations have different digests."""

    seed: int
    digests: tuple[str, ...]


def check_digests(
    worlds: Worlds, seeds: range, processes: int | None, on_end: Callable[[WorldEnd], None]
) -> list[DifferentDigests]:
    """Simulates each seed in two sets of new interpreters with different PYTHONHASHSEED.

    Returns the seeds with different digests.
    """
    found: dict[int, list[str]] = {seed: [] for seed in seeds}
    for hash_seed in _HASH_SEEDS:
        with PlayingProcesses(worlds, processes, environment={"PYTHONHASHSEED": hash_seed}) as players:
            for end in players.play_all(seeds):
                found[end.seed].append(end.digest or end.broken[0].text)
                on_end(end)
    return [DifferentDigests(seed, tuple(digests)) for seed, digests in found.items() if len(set(digests)) > 1]
