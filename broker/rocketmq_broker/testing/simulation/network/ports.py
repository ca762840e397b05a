"""What the simulated network needs from the rest of the world."""

from __future__ import annotations

import contextvars
from typing import Protocol


class NetworkEndpoint(Protocol):
    """A process that binds ports and makes connections."""

    @property
    def name(self) -> str:
        """Returns the name by which faults mean it: "broker-a". A restarted process has it again."""

    @property
    def address(self) -> str:
        """Returns the address of its machine: "10.0.0.3"."""

    @property
    def context(self) -> contextvars.Context:
        """Returns the context in which the process's callbacks run."""


class NetworkHistory(Protocol):
    """The record of what happens."""

    def note(self, process: str, kind: str, text: str, keys: tuple[str, ...] = ()) -> None:
        """Keeps a happening that a person may read."""

    def mix(self, *parts: str | int | bytes) -> None:
        """Mixes an event that nobody reads into the digest."""

    def mix_data(self, place: str, data: bytes) -> None:
        """Mixes data that arrives on a link into the digest."""
