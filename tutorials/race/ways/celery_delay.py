"""Pushes a Celery task after the database commit.

Celery needs threads and real time, so this module models Celery with default settings. `delay()` retries a push to Redis up to
three times. The worker removes a task from the list before it runs the task (acks_late is off). Redis keeps its list in memory.
"""

import asyncio
from typing import Final

from tutorials.race.credits import Credits
from tutorials.race.environment import TaskQueueAway
from tutorials.race.order import Order
from tutorials.race.way import Way

RETRIES: Final = 3
RETRY_AFTER_S: Final = 0.2
LOOK_EVERY_S: Final = 0.05


class CeleryDelayAfterCommit(Way):
    """Pushes a Celery task after the commit.

    The credit is lost if the order process dies before the push, or if the worker dies after it has taken the task.
    """

    name = "celery-delay"
    title = "Celery delay() after commit"

    async def start(self) -> None:
        """Does nothing, because this approach needs no client of the broker."""

    async def place(self, order: Order) -> None:
        """Stores the order, then pushes a task."""
        async with self.database.writing(order) as writing:
            writing.store(order)
        await self._delay(order.message().body.decode())

    async def _delay(self, task: str) -> None:
        for attempt in range(1 + RETRIES):
            try:
                self.process.environment.task_queue.push(task)
                break
            except TaskQueueAway:
                if attempt == RETRIES:
                    raise
                await asyncio.sleep(RETRY_AFTER_S * attempt)

    @classmethod
    async def consume(cls, credits: Credits) -> None:
        """Starts the Celery worker in the credit process."""
        credits.run(_work(credits))


async def _work(credits: Credits) -> None:
    while True:
        task = credits.environment.task_queue.pop()
        if task is None:
            await asyncio.sleep(LOOK_EVERY_S)
            continue
        await credits.may_die("task taken")  # Redis has removed the task, and the credit is not written
        await credits.credit(task)
