"""A table cut into ranges of its integer primary key, so that many tasks can read it and none reads much."""

from dataclasses import dataclass

ROWS_PER_RANGE = 250_000
MOST_RANGES = 2_000


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Keys from `first` to `last`, both included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Since:
    """What is new in a table: the rows in which this integer column is greater."""

    column: str
    value: int


def split_keys(lowest: int | None, highest: int | None, rows_per_range: int = ROWS_PER_RANGE) -> list[KeyRange]:
    """Ranges that together cover the keys from `lowest` to `highest` once; none for an empty table.

    A range holds at most `rows_per_range` rows, unless keys are so sparse that this would make more than MOST_RANGES ranges.
    """
    if lowest is None or highest is None:
        return []
    keys = highest - lowest + 1
    step = max(rows_per_range, -(-keys // MOST_RANGES))
    return [KeyRange(first, min(first + step - 1, highest)) for first in range(lowest, highest + 1, step)]
