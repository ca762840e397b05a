"""The interface of a way. To add one, write a class like those in tutorials/race/ways and pass its file with `--add FILE`."""

from abc import ABC, abstractmethod
from typing import ClassVar

from tutorials.race.brokers import OwnBroker, RacedBroker
from tutorials.race.credits import Credits
from tutorials.race.order import Order
from tutorials.race.process import Process


class Way(ABC):
    """A way to inform the credit process of an order. Each start of the order process creates a new object.

    Its attributes are lost when the process dies. Its commits to `process.database` remain. The faults strike within
    `process.database.writing`, within the broker and within the credit process: a way has only the code that it would have in
    production. Time passes only while a way awaits: a retry without a sleep hangs the race.
    """

    name: ClassVar[str]
    """The name on the command line."""
    title: ClassVar[str]
    """The title in the table."""
    schema: ClassVar[str] = ""
    """The way's tables in the order database."""
    broker: ClassVar[type[RacedBroker]] = OwnBroker
    """The broker on which the way is played."""

    def __init__(self, process: Process) -> None:
        """`process` provides the database and creates clients."""
        self.process = process
        self.database = process.database

    @abstractmethod
    async def start(self) -> None:
        """Runs at each start of the process: creates clients, and resumes unfinished work of an earlier process."""

    @abstractmethod
    async def place(self, order: Order) -> None:
        """Stores the order and informs the credit process. The customer gets its exceptions, except ProcessDied.

        The next order is placed after it has returned, and a broker that is down comes back after some orders: run longer work,
        such as sending until it succeeds, with `process.run`.
        """

    @classmethod
    async def consume(cls, credits: Credits) -> None:
        """Starts the credit process. By default it consumes the topic's messages."""
        await credits.consume_topic()
