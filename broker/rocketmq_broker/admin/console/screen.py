"""Defines screens. A screen is a page that the server updates while it is open."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from rocketmq_broker.admin.console.visit import Visit


@dataclass(frozen=True, slots=True)
class Screen:
    """A page that collects facts from the brokers and renders them with a template."""

    path: str
    title: str
    template: str
    """The template of the live part. It receives the result of `find` as `facts`."""
    find: Callable[[Visit], Awaitable[Any]]
    """A function that returns the facts. If it raises AdminError, the page shows the error's message."""
    refresh_s: float | None = 1.0
    """The seconds between two updates while the page is open; None for a page without updates."""
    heading: Callable[[Visit], str] | None = None
    """A function that returns the heading; None to use the title."""
    elsewhere: Callable[[Any], str | None] | None = None
    """A function that returns the address to redirect to if another page shows these facts better, or else None."""
