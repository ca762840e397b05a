"""Waiting for what happens sooner or later and nobody tells, in real time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

_PATIENCE_S = 120


async def until(condition: Callable[[], object], within_s: float = _PATIENCE_S) -> None:
    """Waits on the event loop. Raises TimeoutError if it does not become true."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0.001)


def wait_until(condition: Callable[[], object], within_s: float = _PATIENCE_S) -> None:
    """Waits in this thread. Fails the test if it does not become true."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"not so after {within_s:g} s")
        time.sleep(0.02)
