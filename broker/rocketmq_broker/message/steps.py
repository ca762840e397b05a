"""Runs generators that divide their work into steps."""

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")


def finish(steps: Generator[None, None, T]) -> T:
    """Runs all steps of a generator without interruption, and returns its result."""
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            result: T = ended.value
            return result
