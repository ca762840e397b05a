"""The interface of a cell's broker: running, harming, passing time, and knowing when it has nothing left to do."""

from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self


class BrokerCannotRun(Exception):
    """The broker cannot be started on this machine; the text names what is missing, or the broker's last output."""


class RacedBroker(ABC):
    """A broker with its name server. `async with` runs both, and clients created within reach them.

    The broker determines the cell's time by `now_s` and `pause`.
    """

    slow_commit_s: ClassVar[tuple[float, float]]
    """The least and greatest time of a slow local transaction: most are longer than the wait for the first check-back."""
    namesrv_addr: str
    """The name server's address, valid also while the broker is down."""

    @abstractmethod
    def __init__(self, seed: int, folder: Path) -> None:
        """Prepares without starting. `folder` is empty and only for the broker; `seed` determines its random choices."""

    @abstractmethod
    async def __aenter__(self) -> Self:
        """Starts serving. Raises BrokerCannotRun."""

    @abstractmethod
    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Ends the broker."""

    @property
    @abstractmethod
    def is_running(self) -> bool:
        """True while it serves, so not between `kill` and `restart`."""

    @property
    @abstractmethod
    def now_s(self) -> float:
        """Seconds since it began to serve, by the cell's time."""

    @abstractmethod
    async def pause(self, seconds: float) -> None:
        """Returns after so many seconds of the cell's time."""

    @abstractmethod
    async def kill(self) -> None:
        """Ends the broker as kill -9 does."""

    @abstractmethod
    async def restart(self) -> None:
        """Starts the killed broker again on its disk; it serves on return. Raises BrokerCannotRun."""

    @abstractmethod
    def lose_answer_about(self, order_id: str) -> None:
        """Loses the answer to the order's next message or half message, which the broker stores."""

    @abstractmethod
    def lose_next_decision(self) -> None:
        """Loses the next COMMIT or ROLLBACK on its way to the broker."""

    @abstractmethod
    async def come_to_rest(self) -> None:
        """Returns once no transaction is pending and no message waits to be consumed, or after a time limit."""

    @abstractmethod
    def count_records(self) -> int:
        """Returns the number of records in its commit log."""
