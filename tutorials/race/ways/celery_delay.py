"""A Celery task after the database commit.

Celery itself needs threads and real time. So this is its behaviour with default settings, in process: `delay()` tries a push to
Redis again up to three times, the worker takes a task off the list before it runs it (acks_late is off), and Redis keeps its
list in memory.
"""

import asyncio
from typing import Final

from tutorials.race.credits import Credits
from tutorials.race.order import Order
from tutorials.race.stage import TaskQueueAway
from tutorials.race.way import Way

RETRIES: Final = 3
RETRY_AFTER_S: Final = 0.2
LOOK_EVERY_S: Final = 0.05


class CeleryDelayAfterCommit(Way):
    """The task may never be pushed, and one that was taken may never be done."""

    name = "celery-delay"
    title = "Celery delay() after commit"

    async def start(self) -> None:
        """Nothing to prepare."""

    async def place(self, order: Order) -> None:
        """Stores; then pushes a task."""
        async with self.database.writing(order) as writing:
            writing.store(order)
        await self._delay(order.message().body.decode())

    async def _delay(self, task: str) -> None:
        for attempt in range(1 + RETRIES):
            try:
                self.process.stage.task_queue.push(task)
                break
            except TaskQueueAway:
                if attempt == RETRIES:
                    raise
                await asyncio.sleep(RETRY_AFTER_S * attempt)

    @classmethod
    async def consume(cls, credits: Credits) -> None:
        """The worker."""
        credits.run(_work(credits))


async def _work(credits: Credits) -> None:
    while True:
        task = credits.stage.task_queue.pop()
        if task is None:
            await asyncio.sleep(LOOK_EVERY_S)
            continue
        await credits.may_die("task taken")  # acknowledged, and not yet done
        await credits.credit(task)
