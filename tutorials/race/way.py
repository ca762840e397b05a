"""What a way has to be. One more is a class like those in tutorials/race/ways; `--add FILE` lets it race."""

from abc import ABC, abstractmethod
from typing import ClassVar

from tutorials.race.brokers import OwnBroker, RacedBroker
from tutorials.race.credits import Credits
from tutorials.race.order import Order
from tutorials.race.process import Process


class Way(ABC):
    """A way to tell the credit side of an order. One object is made for each life of the order process.

    What it keeps in attributes is lost when the process dies. What it commits to `process.database` stays. The faults strike
    within `process.database.writing`, within the broker and within the credit process: a way has no code for them, other than
    what it would have in production. Time passes only where a way awaits: one that tries again without a sleep stops the race.
    """

    name: ClassVar[str]
    """On the command line."""
    title: ClassVar[str]
    """In the table."""
    schema: ClassVar[str] = ""
    """Tables of its own in the order database."""
    broker: ClassVar[type[RacedBroker]] = OwnBroker
    """What it is played on."""

    def __init__(self, process: Process) -> None:
        """`process` has the database and makes clients."""
        self.process = process
        self.database = process.database

    @abstractmethod
    async def start(self) -> None:
        """The process begins: make clients, begin to relay what an earlier life left."""

    @abstractmethod
    async def place(self, order: Order) -> None:
        """Stores the order and tells the credit side. What it raises, other than ProcessDied, the customer sees as an error.

        The next order is placed once it has returned, and a broker that is down comes back after some orders: leave what takes
        longer, such as sending until it works, to `process.run`.
        """

    @classmethod
    async def consume(cls, credits: Credits) -> None:
        """The credit process begins. By default it consumes the messages of the topic."""
        await credits.consume_topic()
