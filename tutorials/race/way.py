"""The interface of an approach to notify another service.

To add an approach, write a subclass of Way and pass its file with `--add FILE`.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

from tutorials.race.brokers import OwnBroker, RacedBroker
from tutorials.race.credits import Credits
from tutorials.race.order import Order
from tutorials.race.process import Process


class Way(ABC):
    """An approach to notify the credit process of an order. Each start of the order process creates a new object.

    When the process dies, the object's attributes are lost, but the commits to `process.database` remain. The faults occur within
    `process.database.writing`, the broker and the credit process, so an approach contains only the code that it would contain in
    production. Virtual time passes only while an approach awaits, so a retry without a sleep hangs the run.
    """

    name: ClassVar[str]
    """The name of the approach on the command line."""
    title: ClassVar[str]
    """The title of the approach in the table."""
    schema: ClassVar[str] = ""
    """The SQL that creates the tables of the approach in the order database."""
    broker: ClassVar[type[RacedBroker]] = OwnBroker
    """The class of the broker that the approach runs on."""
    order_every_s: ClassVar[tuple[float, float]] = (0.0, 0.2)
    """The shortest and the longest interval between two orders in seconds. Faults are as frequent as orders."""

    def __init__(self, process: Process) -> None:
        """Creates the approach for a start of `process`, which provides the order database and creates clients."""
        self.process = process
        self.database = process.database

    @abstractmethod
    async def start(self) -> None:
        """Creates clients, and resumes unfinished work of an earlier process. Called at each start of the order process."""

    @abstractmethod
    async def place(self, order: Order) -> None:
        """Stores the order and notifies the credit process. The customer receives any exception except ProcessDied.

        The next order is placed only after this method has returned, and a broker that is down restarts only after further
        orders. Therefore run longer work, such as a send that is retried until it succeeds, with `process.run`.
        """

    @classmethod
    async def consume(cls, credits: Credits) -> None:
        """Starts the work of the credit process. By default the process consumes the topic's messages."""
        await credits.consume_topic()
