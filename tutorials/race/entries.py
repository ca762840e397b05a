"""Finds approaches and faults by name. A user's file can add approaches to the comparison."""

import importlib.util
import inspect
from collections.abc import Sequence
from pathlib import Path

from tutorials.race.faults import Fault
from tutorials.race.way import Way
from tutorials.race.ways import WAYS, WAYS_ON_APACHE


class NoSuchEntry(Exception):
    """Raised if an approach or a fault is unknown, or a file of approaches is unusable. The message lists the known names."""


def ways_with(file: Path | None, *, on_apache: bool = False) -> tuple[type[Way], ...]:
    """Returns the approaches of the comparison and of `file`. Raises NoSuchEntry.

    `on_apache` adds the approaches on Apache's broker.
    """
    return (*WAYS, *(WAYS_ON_APACHE if on_apache else ()), *(_ways_in(file) if file is not None else ()))


def find_way(ways: Sequence[type[Way]], name: str) -> type[Way]:
    """Returns the approach with this name. Raises NoSuchEntry."""
    for way in ways:
        if way.name == name:
            return way
    raise NoSuchEntry(f"unknown approach {name!r}; choose from {', '.join(way.name for way in ways)}")


def find_fault(name: str) -> Fault:
    """Returns the fault with this name. Raises NoSuchEntry."""
    try:
        return Fault(name)
    except ValueError:
        raise NoSuchEntry(f"unknown fault {name!r}; choose from {', '.join(fault.value for fault in Fault)}") from None


def cells(ways: Sequence[type[Way]], wanted: Sequence[str]) -> list[tuple[type[Way], Fault]]:
    """Returns the matching combinations of approach and fault. Raises NoSuchEntry.

    Each text in `wanted` is WAY/FAULT, WAY or /FAULT. If `wanted` is empty, returns all combinations.
    """
    found: dict[tuple[type[Way], Fault], None] = {}
    for text in wanted or ["/"]:
        way, _, fault = text.partition("/")
        of_ways = [find_way(ways, way)] if way else list(ways)
        of_faults = [find_fault(fault)] if fault else list(Fault)
        found |= {(one, other): None for one in of_ways for other in of_faults}
    return list(found)


def _ways_in(file: Path) -> list[type[Way]]:
    spec = importlib.util.spec_from_file_location(f"race_entry_{file.stem}", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise NoSuchEntry(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = [
        value
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, Way) and value.__module__ == module.__name__ and hasattr(value, "name")
    ]
    if not found:
        raise NoSuchEntry(f"{file} has no subclass of Way with a name")
    taken = {way.name for way in found} & {way.name for way in (*WAYS, *WAYS_ON_APACHE)}
    if taken:
        raise NoSuchEntry(f"{file}: the name {taken.pop()!r} is already used by another approach")
    return found
