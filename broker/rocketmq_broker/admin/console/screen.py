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
    """The template of the part that is drawn anew; it sees what `find` returns as `facts`."""
    find: Callable[[Visit], Awaitable[Any]]
    """Finds the facts. Raises AdminError, whose sentence stands on the page then."""
    refresh_s: float | None = 1.0
    """How often the facts are found anew while somebody looks; None for a page that stands still."""
    heading: Callable[[Visit], str] | None = None
    """What stands above; the title unless given."""
