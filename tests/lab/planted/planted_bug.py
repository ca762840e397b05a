"""Describes a planted bug: the replacements that plant it, what it needs, what it breaks, and what finds it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lab.simulation.judges.violation import Promise
from tests.lab.planted.patches import Patches


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedBug:
    """A plausible mistake in production code, which is planted as a test of the simulations."""

    plant: Callable[[Patches], None]
    """A function that makes the replacements. It has the bug's name, and its docstring begins with what is wrong."""
    needs: str
    """The faults or the situation in which the bug has an effect."""
    breaks: Promise
    """The guarantee that the simulation of `seed` violates first, or the expected one."""
    noticed_by: str
    """A test of the project that fails with the bug. Others may fail too."""
    seed: int | None
    """A seed whose simulation violates a guarantee with the bug, and none without it. None if no such seed is known."""

    @property
    def name(self) -> str:
        """The name of the bug."""
        return self.plant.__name__.replace("_", "-")

    @property
    def sentence(self) -> str:
        """One sentence that describes the bug."""
        return (self.plant.__doc__ or "").partition("\n")[0]

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Plants the bug during the block. Raises PlantingFailed if the production code has changed since it was written."""
        patches = Patches()
        try:
            self.plant(patches)
            yield
        finally:
            patches.undo()


def planted_bug(
    *, needs: str, breaks: Promise, noticed_by: str, seed: int | None
) -> Callable[[Callable[[Patches], None]], PlantedBug]:
    """Returns a decorator that turns a function which makes replacements into a planted bug."""

    def described(plant: Callable[[Patches], None]) -> PlantedBug:
        return PlantedBug(plant=plant, needs=needs, breaks=breaks, noticed_by=noticed_by, seed=seed)

    return described
