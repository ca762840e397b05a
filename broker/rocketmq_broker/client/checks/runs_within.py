"""Producers and consumers as context managers: started on the way in, shut down on the way out."""

from __future__ import annotations

from abc import abstractmethod
from types import TracebackType
from typing import Self


class RunsWithin:
    """`async with client:` starts it and shuts it down, whatever happens within."""

    @abstractmethod
    async def start(self) -> None:
        """Begin."""

    @abstractmethod
    async def shutdown(self) -> None:
        """End."""

    async def __aenter__(self) -> Self:
        """Started. Raises what `start` raises, and then nothing runs."""
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Shut down."""
        await self.shutdown()
