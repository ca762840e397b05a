"""The order process. Its state in memory is lost when it dies."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from rocketmq_broker.client import Producer, TransactionListener, TransactionProducer
from tutorials.race.calls import Calls
from tutorials.race.environment import Environment
from tutorials.race.order_database import OrderDatabase, ProcessDied

P = TypeVar("P", bound=Producer)


class Process:
    """The order process from one start to its end. A restart creates a new object, and only the environment survives."""

    def __init__(self, environment: Environment) -> None:
        """Opens the order database. The process has no clients and no tasks yet."""
        self.environment = environment
        self.database = OrderDatabase(environment.order_file, environment.plan, self.die, self.must_live)
        self.calls = Calls()
        self.is_dead = False
        self.kills_everything = False
        """True if the broker and the credit process died together with this process."""
        self._producers: list[Producer] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def producer(self, group: str) -> Producer:
        """Starts and returns a producer, which runs until the process ends."""
        return await self._started(Producer(group, namesrv_addr=self.environment.namesrv_addr))

    async def transaction_producer(self, group: str, listener: TransactionListener) -> TransactionProducer:
        """Starts and returns a transaction producer, which runs until the process ends."""
        return await self._started(TransactionProducer(group, listener, namesrv_addr=self.environment.namesrv_addr))

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs the work in the background until the process ends."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(_hear)

    def must_live(self) -> None:
        """Raises ProcessDied if the process is dead."""
        if self.is_dead:
            raise ProcessDied

    def die(self, *, everything: bool = False) -> ProcessDied:
        """Marks the process as dead, and returns the exception to raise. `everything` kills the other processes too."""
        self.is_dead = True
        self.kills_everything |= everything
        return ProcessDied()

    async def end(self) -> None:
        """Ends the process: stops its tasks and closes its connections and files, as the operating system does."""
        self.is_dead = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.calls.end()
        for producer in self._producers:
            await producer.shutdown()
        self.environment.rows_written += self.database.rows
        self.database.close()

    async def _started(self, producer: P) -> P:
        self.must_live()
        await producer.start()
        self._producers.append(producer)
        return producer


def _hear(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        task.exception()
