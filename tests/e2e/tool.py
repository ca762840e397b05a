"""Runs python -m rocketmq_broker.admin like an operator."""

import asyncio
import json
import subprocess
import sys
from typing import Any


class Tool:
    """The command line with the options for its brokers."""

    def __init__(self, *target: str) -> None:
        self._target = target

    async def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "rocketmq_broker.admin", *self._target, *arguments]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60)
        assert "Traceback" not in done.stderr
        return done

    async def said(self, *arguments: str) -> str:
        """Runs a command that must succeed, and returns its output."""
        done = await self(*arguments)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout

    async def refused(self, *arguments: str) -> str:
        """Runs a command that must be refused, and returns the error text."""
        done = await self(*arguments)
        assert (done.returncode, done.stdout) == (1, "")
        return done.stderr

    async def rows(self, *arguments: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads(await self.said(*arguments, "--json"))
        return rows

    async def wait_for(self, *arguments: str) -> list[dict[str, Any]]:
        async with asyncio.timeout(60):
            while not (rows := await self.rows(*arguments)):  # noqa: ASYNC110 (nobody tells)
                await asyncio.sleep(0.2)
        return rows
