"""Describes a planted bug by its name, its area, a one-sentence description, and the replacements that plant it."""

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
    """A plausible mistake in production code, which is planted as a test of the simulations."""

    name: str
    area: PlantedArea
    sentence: str
    """One sentence that describes the bug."""
    needs: str
    """The faults or the situation in which the bug has an effect."""
    breaks: Promise
    """The guarantee that the bug is expected to violate first."""
    plant: Callable[[Patches], None]
    """A function that makes the replacements."""
