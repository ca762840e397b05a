"""Work that is divided into steps, and its run without a pause."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")


def finish(steps: Generator[None, None, T]) -> T:
    """Runs all steps without a pause and returns their result: for work during which nothing else must run. Raises its errors."""
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            result: T = ended.value
            return result
