"""Functions that poll for a condition in real time, for events without a notification."""

import asyncio
import time
from collections.abc import Callable

import pytest

_PATIENCE_S = 120


async def until(condition: Callable[[], object], within_s: float = _PATIENCE_S) -> None:
    """Polls on the event loop until the condition is true. Raises TimeoutError after `within_s`."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0.001)


def wait_until(condition: Callable[[], object], within_s: float = _PATIENCE_S) -> None:
    """Polls in this thread until the condition is true. Fails the test after `within_s`."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"not so after {within_s:g} s")
        time.sleep(0.02)
