"""The list of all planted bugs, and a context manager that plants one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from lab.simulation.planted.areas import broker, client, credits, orders, store, two_faults
from lab.simulation.planted.bug import Planted
from lab.simulation.planted.patches import Patches

ALL_PLANTED: Final = (
    *broker.PLANTED, *store.PLANTED, *client.PLANTED, *orders.PLANTED, *credits.PLANTED, *two_faults.PLANTED,
)  # fmt: skip
"""All planted bugs, ordered by area."""


def find_planted(name: str) -> Planted:
    """Returns the bug with this name. Raises KeyError with the list of names."""
    by_name = {bug.name: bug for bug in ALL_PLANTED}
    if name not in by_name:
        raise KeyError(f"unknown bug {name!r}; choose from {', '.join(by_name)}")
    return by_name[name]


@contextmanager
def planted(name: str) -> Iterator[Planted]:
    """Plants a bug during the block. Raises PlantingFailed if the production code has changed since the bug was written."""
    bug, patches = find_planted(name), Patches()
    try:
        bug.plant(patches)
        yield bug
    finally:
        patches.undo()
