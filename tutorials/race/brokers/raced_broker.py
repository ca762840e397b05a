"""What a cell needs of a broker: to run it, to harm it, to pass its time, and to know when it has nothing left to do."""

from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self


class BrokerCannotRun(Exception):
    """The broker cannot be started on this machine; the text says what is missing, or what it said."""


class RacedBroker(ABC):
    """A broker with its name server. `async with` runs both, and clients that are made within reach them.

    A broker decides what time is: `now_s` and `pause` are those of the cell.
    """

    slow_commit_s: ClassVar[tuple[float, float]]
    """How long a slow local transaction takes, from and to: most of them longer than until the first check-back."""
    namesrv_addr: str
    """Where clients find it, also while it is down."""

    @abstractmethod
    def __init__(self, seed: int, folder: Path) -> None:
        """Does not run yet. `folder` is empty and for the broker alone; `seed` is for what it leaves to chance."""

    @abstractmethod
    async def __aenter__(self) -> Self:
        """Serves when it returns. Raises BrokerCannotRun."""

    @abstractmethod
    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Ends it."""

    @property
    @abstractmethod
    def is_running(self) -> bool:
        """Whether it serves: not between `kill` and `restart`."""

    @property
    @abstractmethod
    def now_s(self) -> float:
        """Seconds since it began to serve, by the cell's time."""

    @abstractmethod
    async def pause(self, seconds: float) -> None:
        """Returns after so many seconds of the cell's time."""

    @abstractmethod
    async def kill(self) -> None:
        """Ends the broker as by kill -9."""

    @abstractmethod
    async def restart(self) -> None:
        """The killed broker serves again when it returns, with what its disk has. Raises BrokerCannotRun."""

    @abstractmethod
    def lose_answer_about(self, order_id: str) -> None:
        """The broker stores the next message or half message of that order, and its answer is lost."""

    @abstractmethod
    def lose_next_decision(self) -> None:
        """The next COMMIT or ROLLBACK is lost on its way to the broker."""

    @abstractmethod
    async def come_to_rest(self) -> None:
        """Returns once no transaction is pending and no message waits to be consumed; after a bound in any case."""

    @abstractmethod
    def count_records(self) -> int:
        """How many records its commit log has."""
