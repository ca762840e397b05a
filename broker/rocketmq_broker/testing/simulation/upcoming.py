"""Counts the occurrences of an event, such as a database commit or a call, until planned faults are due."""

from typing import Generic, TypeVar

T = TypeVar("T")


class Upcoming(Generic[T]):
    """Items that are due at the nth occurrence of an event, counted from the time at which they are added."""

    def __init__(self) -> None:
        """Creates an empty collection."""
        self._items: list[tuple[int, T]] = []

    def add(self, nth: int, item: T) -> None:
        """Adds an item. `nth` is 1 for the next occurrence."""
        self._items.append((nth, item))

    def occur(self) -> list[T]:
        """Counts one occurrence. Removes the items that are due, and returns them in the order in which they were added."""
        counted = [(nth - 1, item) for nth, item in self._items]
        self._items = [(nth, item) for nth, item in counted if nth > 0]
        return [item for nth, item in counted if nth <= 0]

    def clear(self) -> None:
        """Removes all items."""
        self._items.clear()
