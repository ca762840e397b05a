"""Defines the interface of a cell's broker: run it, inject faults, advance time, and wait until it is idle."""

from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self


class BrokerCannotRun(Exception):
    """The broker cannot be started. The message names what is missing, or contains the broker's last output."""


class RacedBroker(ABC):
    """A broker with its name server. `async with` runs both.

    `now_s` and `pause` are the cell's clock.
    """

    slow_commit_s: ClassVar[tuple[float, float]]
    """The shortest and the longest slow local transaction. Most are longer than the wait for the first check-back."""
    namesrv_addr: str
    """The name server's address, also while the broker is down."""

    @abstractmethod
    def __init__(self, seed: int, folder: Path) -> None:
        """Creates the broker without starting it. `folder` is an empty folder for it; `seed` determines random choices."""

    @abstractmethod
    async def __aenter__(self) -> Self:
        """Starts serving. Raises BrokerCannotRun."""

    @abstractmethod
    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stops the broker."""

    @property
    @abstractmethod
    def is_running(self) -> bool:
        """True while the broker serves; false between `kill` and `restart`."""

    @property
    @abstractmethod
    def now_s(self) -> float:
        """Seconds of the cell's time since the broker's start."""

    @abstractmethod
    async def pause(self, seconds: float) -> None:
        """Waits for `seconds` of the cell's time."""

    @abstractmethod
    async def kill(self) -> None:
        """Kills the broker, like kill -9."""

    @abstractmethod
    async def restart(self) -> None:
        """Restarts the killed broker on its store, and waits until it serves. Raises BrokerCannotRun."""

    @abstractmethod
    def lose_answer_about(self, order_id: str) -> None:
        """Loses the answer to the order's next message or half message. The broker stores the message."""

    @abstractmethod
    def lose_next_decision(self) -> None:
        """Loses the next COMMIT or ROLLBACK on its way to the broker."""

    @abstractmethod
    async def come_to_rest(self) -> None:
        """Waits until no transaction is pending and all messages are consumed, or until a time limit."""

    @abstractmethod
    def count_records(self) -> int:
        """Returns the number of records in its commit log."""
