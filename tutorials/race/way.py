"""The interface of a way. A further one is a class like those in tutorials/race/ways; `--add FILE` lets it race."""

from abc import ABC, abstractmethod
from typing import ClassVar

from tutorials.race.brokers import OwnBroker, RacedBroker
from tutorials.race.credits import Credits
from tutorials.race.order import Order
from tutorials.race.process import Process


class Way(ABC):
    """A way to inform the credit side of an order. Each life of the order process has its own object.

    Its attributes are lost when the process dies. Its commits to `process.database` stay. The faults strike within
    `process.database.writing`, within the broker and within the credit process: a way has no code for them, other than its code
    for production. Time passes only where a way awaits: a retry without a sleep stops the race.
    """

    name: ClassVar[str]
    """On the command line."""
    title: ClassVar[str]
    """In the table."""
    schema: ClassVar[str] = ""
    """The way's tables in the order database."""
    broker: ClassVar[type[RacedBroker]] = OwnBroker
    """The broker that it is played on."""

    def __init__(self, process: Process) -> None:
        """`process` has the database and creates clients."""
        self.process = process
        self.database = process.database

    @abstractmethod
    async def start(self) -> None:
        """Begins a life of the process: creates clients, and relays what an earlier life left."""

    @abstractmethod
    async def place(self, order: Order) -> None:
        """Stores the order and informs the credit side. The customer sees its errors, except ProcessDied.

        The next order is placed after it has returned, and a broker that is down comes back after some orders: leave longer work,
        such as sending until it succeeds, to `process.run`.
        """

    @classmethod
    async def consume(cls, credits: Credits) -> None:
        """Begins the credit process. By default it consumes the messages of the topic."""
        await credits.consume_topic()
