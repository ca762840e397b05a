"""Waiting for what other threads and tasks do."""

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], bool]) -> None:
    """Fails after 30 s."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0.001)
