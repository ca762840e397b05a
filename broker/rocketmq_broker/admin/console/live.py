"""Sends parts of pages as server-sent events. The first event contains the whole part. Later events contain the changed lines."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from difflib import SequenceMatcher
from typing import Final

MAX_STREAMS: Final = 32
"""The maximum number of live pages at a time. Further pages are not updated, and show a notice that says so."""
_SILENT_S: Final = 15.0
"""The seconds without events after which a comment is sent, to detect closed connections and prevent proxy timeouts."""
_MAX_LINES: Final = 4_000
"""The maximum number of lines to compare. A part with more lines is sent as a whole, because a comparison would be slower."""

Change = tuple[int, int, list[str]]
"""The first and the end index of the replaced lines in the old version, and the new lines."""


class Streams:
    """The event streams of all live pages."""

    def __init__(self, max_streams: int = MAX_STREAMS) -> None:
        self.stopping = asyncio.Event()
        """An asyncio event that is set when the console stops, which ends all streams."""
        self._max_streams = max_streams
        self._open = 0

    @property
    def is_full(self) -> bool:
        """True if the maximum number of live pages is reached."""
        return self._open >= self._max_streams

    async def begun(self, draw: Callable[[], Awaitable[str]], every_s: float) -> AsyncGenerator[str] | None:
        """Starts and returns the event stream of a live page. Returns None if the maximum number of live pages is reached.

        `draw` renders the live part of the page. It is called every `every_s` seconds.
        """
        if self.is_full:
            return None
        parts = self.events(draw, every_s)
        return _with_first(await anext(parts), parts)

    async def events(self, draw: Callable[[], Awaitable[str]], every_s: float) -> AsyncGenerator[str]:
        """Yields an event with the whole part, then an event with each later change of the part.

        `draw` renders the part. It is called every `every_s` seconds. The stream ends when the console stops.
        """
        self._open += 1
        try:
            shown: str | None = None
            silent_s = 0.0
            while not self.stopping.is_set():
                part = "\n".join((await draw()).splitlines())
                if part != shown:
                    yield _event_of(shown, part)
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


def _event_of(shown: str | None, part: str) -> str:
    changes = changes_of(shown, part) if shown is not None else None
    return server_sent_event("part", part) if changes is None else server_sent_event("changes", changes)


def server_sent_event(name: str, data: str) -> str:
    """Returns one server-sent event, with a `data` line for each line of `data`."""
    lines = "".join(f"data: {line}\n" for line in data.splitlines() or [""])
    return f"event: {name}\n{lines}\n"


def changes_of(old: str, new: str) -> str | None:
    """Returns the changed lines as JSON, or None if the whole part should be sent instead."""
    before, after = old.split("\n"), new.split("\n")
    if max(len(before), len(after)) > _MAX_LINES:
        return None
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    changes: list[Change] = [
        (begin, end, after[fresh_begin:fresh_end])
        for what, begin, end, fresh_begin, fresh_end in matcher.get_opcodes()
        if what != "equal"
    ]
    encoded = json.dumps(changes, ensure_ascii=False, separators=(",", ":"))
    return encoded if len(encoded) < len(new) else None
