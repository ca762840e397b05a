"""The interface of the brokers of the race."""

from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self


class BrokerCannotRun(Exception):
    """The broker cannot be started. The message names the missing software, or contains the broker's last output."""


class RacedBroker(ABC):
    """A broker with its name server. `async with` starts and stops both.

    `now_s` and `pause` use the clock of the run: virtual or real time.
    """

    slow_commit_s: ClassVar[tuple[float, float]]
    """The shortest and the longest duration of a slow local transaction in seconds.

    Most durations in this range are longer than the time until the first check-back.
    """
    namesrv_addr: str
    """The address of the name server. It is also valid while the broker is down."""

    @abstractmethod
    def __init__(self, seed: int, folder: Path) -> None:
        """Creates the broker without starting it.

        `folder` is an empty folder for the broker's files. `seed` determines the broker's random choices.
        """

    @abstractmethod
    async def __aenter__(self) -> Self:
        """Starts the name server and the broker. Raises BrokerCannotRun."""

    @abstractmethod
    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stops the broker."""

    @property
    @abstractmethod
    def is_running(self) -> bool:
        """True while the broker is running; False between `kill` and `restart`."""

    @property
    @abstractmethod
    def now_s(self) -> float:
        """The time since the broker's start in seconds, on the clock of the run."""

    @abstractmethod
    async def pause(self, seconds: float) -> None:
        """Waits for `seconds` on the clock of the run."""

    @abstractmethod
    async def kill(self) -> None:
        """Kills the broker, like kill -9."""

    @abstractmethod
    async def restart(self) -> None:
        """Restarts the killed broker with its store, and waits until it accepts requests. Raises BrokerCannotRun."""

    @abstractmethod
    def lose_answer_about(self, order_id: str) -> None:
        """Drops the response to the next message or half message of this order. The broker stores the message."""

    @abstractmethod
    def lose_next_decision(self) -> None:
        """Drops the next COMMIT or ROLLBACK before it reaches the broker."""

    @abstractmethod
    async def come_to_rest(self) -> None:
        """Waits until no transaction is pending and all messages are consumed. Gives up after a time limit."""

    @abstractmethod
    def count_records(self) -> int:
        """Returns the number of records in the broker's commit log."""
