"""Divides a table into ranges of its integer primary key, which are read by separate tasks."""

from dataclasses import dataclass

ROWS_PER_RANGE = 250_000
MAX_RANGES = 2_000


@dataclass(frozen=True, slots=True)
class KeyRange:
    """A range of keys from `first` to `last`, both included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Since:
    """Selects the rows in which an integer column is greater than a value."""

    column: str
    value: int


def split_keys(lowest: int | None, highest: int | None, rows_per_range: int = ROWS_PER_RANGE) -> list[KeyRange]:
    """Returns disjoint ranges that cover the keys from `lowest` to `highest`; empty for an empty table.

    A range has at most `rows_per_range` rows, unless that would need more than MAX_RANGES ranges.
    """
    if lowest is None or highest is None:
        return []
    keys = highest - lowest + 1
    step = max(rows_per_range, -(-keys // MAX_RANGES))
    return [KeyRange(first, min(first + step - 1, highest)) for first in range(lowest, highest + 1, step)]
