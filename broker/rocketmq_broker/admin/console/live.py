"""Parts of pages as server-sent events: drawn again and again, sent when they changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

MOST_STREAMS: Final = 32
"""The most live pages at a time; further ones stand still and say so."""
_SILENT_S: Final = 15.0
"""The longest silence before a comment is sent: it reveals closed clients, and keeps proxies from cutting the connection."""


class Streams:
    """All live pages of a console."""

    def __init__(self, most: int = MOST_STREAMS) -> None:
        self.stopping = asyncio.Event()
        """Set when the console ends: all streams end then."""
        self._most = most
        self._open = 0

    @property
    def is_full(self) -> bool:
        """True if no further page can be live."""
        return self._open >= self._most

    async def begun(self, draw: Callable[[], Awaitable[str]], every_s: float) -> AsyncGenerator[str] | None:
        """Starts the events of a live page, which counts from now. Returns None at the limit of live pages."""
        if self.is_full:
            return None
        parts = self.of(draw, every_s)
        return _with_first(await anext(parts), parts)

    async def of(self, draw: Callable[[], Awaitable[str]], every_s: float) -> AsyncGenerator[str]:
        """Yields events with the current part, and with each change."""
        self._open += 1
        try:
            shown, silent_s = None, 0.0
            while not self.stopping.is_set():
                part = await draw()
                if part != shown:
                    yield server_sent_event("part", part)
                    shown, silent_s = part, 0.0
                elif silent_s >= _SILENT_S:
                    yield ": nothing changed\n\n"
                    silent_s = 0.0
                await self._pause(every_s)
                silent_s += every_s
        finally:
            self._open -= 1

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self.stopping.wait()
        except TimeoutError:
            return


async def _with_first(first: str, others: AsyncGenerator[str]) -> AsyncGenerator[str]:
    try:
        yield first
        async for part in others:
            yield part
    finally:
        await others.aclose()


def server_sent_event(name: str, data: str) -> str:
    """Formats one event, with a `data` line for each line of `data`."""
    lines = "".join(f"data: {line}\n" for line in data.splitlines() or [""])
    return f"event: {name}\n{lines}\n"
