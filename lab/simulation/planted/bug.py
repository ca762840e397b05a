"""What a planted bug is: a name, an area, a sentence, and the replacements that plant it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from lab.simulation.judges.violation import Promise
from lab.simulation.planted.patches import Patches


class PlantedArea(StrEnum):
    """A part of the system that has planted bugs."""

    BROKER = "broker"
    STORE = "store and recovery"
    CLIENT = "client"
    ORDERS = "order service"
    CREDITS = "credit service"
    TWO_FAULTS = "two faults together"


@dataclass(frozen=True, slots=True)
class Planted:
    """A plausible mistake in production code."""

    name: str
    area: PlantedArea
    sentence: str
    """What is wrong, in one plain sentence."""
    needs: str
    """The faults, or the situation, in which it does harm."""
    breaks: Promise
    """The promise that it breaks first, as far as can be foreseen."""
    plant: Callable[[Patches], None]
    """Replaces what it changes."""
