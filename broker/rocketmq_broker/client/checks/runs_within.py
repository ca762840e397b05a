"""The base class that makes producers and consumers async context managers."""

from __future__ import annotations

from abc import abstractmethod
from types import TracebackType
from typing import Self


class RunsWithin:
    """Base class for `async with client:`, which starts the client and shuts it down when the block ends."""

    @abstractmethod
    async def start(self) -> None:
        """Starts the client."""

    @abstractmethod
    async def shutdown(self) -> None:
        """Shuts the client down."""

    async def __aenter__(self) -> Self:
        """Starts the client. Raises the errors of `start`, after which the client is not running."""
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Shuts the client down."""
        await self.shutdown()
