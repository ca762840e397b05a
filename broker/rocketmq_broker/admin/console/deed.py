"""The effect of a form of the console, requested by POST with the token that only a page of this console has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from rocketmq_broker.admin.console.visit import Visit


@dataclass(frozen=True, slots=True)
class Deed:
    """An action that changes a broker's data."""

    path: str
    do: Callable[[Visit], Awaitable[str]]
    """Does it, and returns a sentence about the result. Raises AdminError."""
    back_to: Callable[[Visit], str]
    """The page that the visitor sees then."""
    is_said: bool = True
    """Whether that page shows the sentence. False where the page tells by itself how it goes."""
