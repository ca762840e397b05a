"""Runs long file operations on another thread."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def on_thread(work: Callable[[], T]) -> T:
    """Runs `work` on a thread and returns its result.

    If cancelled, waits until `work` has ended, because the caller's file lock must be held until then.
    """
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise
