"""An answer that must be awaited, and complains if it is not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from operator import methodcaller
from typing import Any, Final, Generic, NoReturn, TypeVar

T = TypeVar("T")

IS_ASSERTION: Final = methodcaller("errisinstance", AssertionError)
"""As `__tracebackhide__` of a module: pytest shows the line of the test that failed, and none of the module's own lines."""


class Asked(Awaitable[T], Generic[T]):
    """The answer to a question about the broker. Awaiting it waits until the broker is idle."""

    def __init__(self, question: str, answer: Callable[[], Awaitable[T]]) -> None:
        """`question` is the call's text; awaiting calls `answer`."""
        self._question = question
        self._answer = answer

    def __await__(self) -> Generator[Any, None, T]:
        """Returns the answer."""
        return self._answer().__await__()

    def __bool__(self) -> NoReturn:
        """Raises TypeError: an answer without `await` is neither true nor false."""
        raise TypeError(f"{self._question} is a question: write `await rocketmq.{self._question}`")

    def __repr__(self) -> str:
        """Shows the call."""
        return f"<{self._question}, not awaited>"
