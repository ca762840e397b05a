"""An answer that must be awaited, and says so where somebody forgets it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from operator import methodcaller
from typing import Any, Final, Generic, NoReturn, TypeVar

T = TypeVar("T")

IS_ASSERTION: Final = methodcaller("errisinstance", AssertionError)
"""As `__tracebackhide__` of a module: pytest shows the line of the test that failed, and none of the module's own lines."""


class Asked(Awaitable[T], Generic[T]):
    """What a question about the broker returns: the answer waits until the broker has nothing left to do."""

    def __init__(self, question: str, answer: Callable[[], Awaitable[T]]) -> None:
        """`question` is how it was asked; `answer` is called when the answer is awaited."""
        self._question = question
        self._answer = answer

    def __await__(self) -> Generator[Any, None, T]:
        """The answer."""
        return self._answer().__await__()

    def __bool__(self) -> NoReturn:
        """An answer that nobody awaited is neither true nor false."""
        raise TypeError(f"{self._question} is a question: write `await rocketmq.{self._question}`")

    def __repr__(self) -> str:
        """How it was asked."""
        return f"<{self._question}, not awaited>"
