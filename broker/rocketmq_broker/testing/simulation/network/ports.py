"""The interfaces that the simulated network requires."""

import contextvars
from typing import Protocol


class NetworkEndpoint(Protocol):
    """A process that binds ports and connects to them."""

    @property
    def name(self) -> str:
        """Returns the name of the process for faults, such as "broker-a". A restarted process has the same name."""

    @property
    def address(self) -> str:
        """Returns the address of the process's machine, such as "10.0.0.3"."""

    @property
    def context(self) -> contextvars.Context:
        """Returns the context in which the process's callbacks run."""


class NetworkHistory(Protocol):
    """The part of a world's history that the network uses."""

    def note(self, process: str, kind: str, text: str, keys: tuple[str, ...] = ()) -> None:
        """Records a readable event."""

    def mix(self, *parts: str | int | bytes) -> None:
        """Adds an event to the digest only."""

    def mix_data(self, place: str, data: bytes) -> None:
        """Adds data that arrives on a link to the digest."""
