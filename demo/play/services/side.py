"""Defines what the order service and the credit service of a session share: event loop, world and list of events."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from sqlalchemy import Engine, text

from rocketmq_broker.admin.timeline.event import Arrow
from rocketmq_broker.testing.loops.page_loop import PageLoop
from rocketmq_broker.world import World

T = TypeVar("T")
Row = dict[str, Any]
"""A row of a table by column name."""
Tables = dict[str, list[Row]]
"""The rows of a database by table."""
ORDER_SERVICE: Final = "order service"
CREDIT_SERVICE: Final = "credit service"
SHORT_ID: Final = 8
"""The number of characters of an order id that events show."""


class DrawnStep(NamedTuple):
    """An event as an arrow of the sequence diagram."""

    transaction_id: str
    arrow: Arrow


class Note(Protocol):
    """Adds an event to the session."""

    def __call__(self, who: str, text: str, kind: str, step: DrawnStep | None = None) -> None:
        """`who` is the part of the system, `text` the sentence. With `step` the event is also an arrow of a diagram."""


class ProcessDied(BaseException):
    """Raised to end the order service's process like kill -9. It is a BaseException, so that no service code catches it."""


@dataclass(frozen=True, slots=True)
class SessionEvent:
    """An event of a service, which the page shows."""

    position: int
    """The number of the journal's events before it."""
    at_s: float
    who: str
    text: str
    kind: str
    step: DrawnStep | None = None
    """The event's arrow in a diagram, if it has one."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The session's objects that a service uses."""

    loop: PageLoop
    world: World
    namesrv_addr: str
    note: Note


class PageClientLoop:
    """The event loop of a service's client (`service_runtime.messaging.client_loop.ClientLoop`) in a session.

    A page has one event loop and no threads. `run` therefore runs the loop until the coroutine has a result.
    """

    def __init__(self, loop: PageLoop) -> None:
        """`loop` is the session's event loop."""
        self._loop = loop
        self._death: asyncio.Future[None] = loop.create_future()

    def start(self) -> None:
        """Does nothing, because the session created the loop."""

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Runs the coroutine and returns its result.

        After `timeout_s`, cancels the coroutine and raises TimeoutError. Raises ProcessDied if the process ends first.
        """
        return self._loop.complete(self._while_alive(work, timeout_s))

    def stop(self) -> None:
        """Does nothing, because the session closes the loop."""

    async def die(self) -> None:
        """Ends the process, so that calls of `run` raise ProcessDied. Never returns."""
        self._death.set_result(None)
        await asyncio.Event().wait()

    async def _while_alive(self, work: Coroutine[Any, Any, T], timeout_s: float | None) -> T:
        running = asyncio.ensure_future(work)
        ends: set[asyncio.Future[Any]] = {running} if self._death.done() else {running, self._death}
        await asyncio.wait(ends, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            return running.result()
        running.cancel()
        raise ProcessDied if self._death.done() else TimeoutError(f"no result within {timeout_s} s")


def short_id(order_id: str) -> str:
    """Returns the beginning of an order id, as events show it."""
    return order_id[:SHORT_ID]


def rows_of(engine: Engine, table: str) -> list[Row]:
    """Returns all rows of a table in insertion order."""
    with engine.connect() as connection:
        return [dict(row) for row in connection.execute(text(f"SELECT * FROM {table} ORDER BY rowid")).mappings()]
