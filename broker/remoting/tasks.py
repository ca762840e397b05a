"""Tasks that have an owner: whoever starts them here ends them here."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

logger = logging.getLogger(__name__)


class Tasks:
    """Background tasks, all cancelled and awaited by `stop`. An error in one is logged and ends nothing else."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """Runs the work until it is done."""
        task = asyncio.create_task(_logged(name, work), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def every(self, seconds: float, name: str, action: Callable[[], object]) -> None:
        """Calls the action again and again, `seconds` after it returned, the first time after `seconds`."""
        self.start(name, _repeat(seconds, name, action))

    async def stop(self) -> None:
        """Cancels what still runs, and returns when all of it has ended."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _logged(name: str, work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Exception:
        logger.exception("%s failed", name)


async def _repeat(seconds: float, name: str, action: Callable[[], object]) -> None:
    complaint = ""
    while True:
        await asyncio.sleep(seconds)
        try:
            action()
            complaint = ""
        except OSError as error:
            # A full disk, say: a stack tells no more than its words do, and once is enough.
            if str(error) != complaint:
                complaint = str(error)
                logger.error("%s failed, and is tried again every %g s: %s", name, seconds, complaint)
        except Exception:
            logger.exception("%s failed; it is tried again in %g s", name, seconds)
