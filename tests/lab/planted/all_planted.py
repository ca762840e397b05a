"""All planted bugs, by name."""

from collections.abc import Mapping
from typing import Final

from tests.lab.planted import broker, client, credits, orders, store, two_faults
from tests.lab.planted.planted_bug import PlantedBug

PLANTED: Final[Mapping[str, PlantedBug]] = {
    bug.name: bug
    for area in (broker, store, client, orders, credits, two_faults)
    for bug in vars(area).values()
    if isinstance(bug, PlantedBug)
}
"""Maps the names of the planted bugs to the bugs, ordered by area."""
