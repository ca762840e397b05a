"""A screen: a page whose middle part the server redraws while a visitor looks at it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from rocketmq_broker.admin.console.visit import Visit


@dataclass(frozen=True, slots=True)
class Screen:
    """Facts that are found for a visitor, and the template that shows them."""

    path: str
    title: str
    template: str
    """The template of the live part; it sees the result of `find` as `facts`."""
    find: Callable[[Visit], Awaitable[Any]]
    """Finds the facts. Raises AdminError, whose sentence stands on the page then."""
    refresh_s: float | None = 1.0
    """The seconds between two searches for facts while the page is open; None for a page that stands still."""
    heading: Callable[[Visit], str] | None = None
    """The heading; by default the title."""
    elsewhere: Callable[[Any], str | None] | None = None
    """Returns the address of the page that shows these facts better, to which the visitor is sent; None to stay."""
