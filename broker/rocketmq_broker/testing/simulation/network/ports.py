"""The interface of the processes that use the simulated network."""

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
