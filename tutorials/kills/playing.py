"""Plays one combination of moment and victim in its own event loop. The time is virtual, so minutes take milliseconds."""

import asyncio
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rocketmq_broker.testing import RocketMQ
from tutorials.kills.cells import Moment, Victim
from tutorials.kills.halt import Halt
from tutorials.kills.order_service import PLACED, OrderService
from tutorials.kills.shop import Notebook, Shop
from tutorials.race.cell import silence
from tutorials.race.order_database import ProcessDied

ORDER_ID: Final = "order-1"
THING: Final = "a book"
DOWN_S: Final = 5
FULL_S: Final = 60
"""The time in seconds after which a full disk has space again."""
QUIET_MINUTES: Final = 3
"""The time to wait after the kill, in minutes. It exceeds the time until a check-back or a redelivery."""
MAX_REQUESTS: Final = 10


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one combination of moment and victim."""

    moment: Moment
    victim: Victim
    on_disk: list[str]
    """The kinds of the records and rows on disk immediately after the kill, in the order in which they were written."""
    heard: str | None
    """The response that the customer got, or None if there was no response."""
    notebook: Notebook
    orders: int
    credits: int
    story: str
    """The broker's events with their times, as text."""

    @property
    def is_consistent(self) -> bool:
        """True if the number of credits equals the number of orders."""
        return self.orders == self.credits

    @property
    def finished_by(self) -> str:
        """A description of what completed the order."""
        causes = [f"check-back: {answer}, by order service {life}" for life, answer in self.notebook.checks[-1:]]
        deliveries = self.notebook.deliveries
        if len(deliveries) > 1:
            causes.append(f"redelivery to credit service {deliveries[-1]}")
        elif deliveries[-1:] not in ([], [1]):
            causes.append(f"delivery to credit service {deliveries[-1]}")
        without = "nothing had begun" if not self.orders else "no recovery needed" if self.credits else "not finished"
        return "; ".join(causes) or without


def play(
    moment: Moment,
    victim: Victim,
    *,
    settings: Mapping[str, str] | None = None,
    insists: bool = False,
    order_service: Callable[..., OrderService] = OrderService,
) -> Outcome:
    """Kills `victim` at `moment` and returns the outcome. The same arguments always produce the same outcome.

    With `insists` the customer repeats a failed request. `settings` are settings of broker.conf.
    """
    with tempfile.TemporaryDirectory(prefix="kill-everything-") as folder, silence():
        return asyncio.run(_play(moment, victim, Path(folder), settings or {}, insists, order_service))


async def _play(
    moment: Moment,
    victim: Victim,
    folder: Path,
    settings: Mapping[str, str],
    insists: bool,
    order_service: Callable[..., OrderService],
) -> Outcome:
    async with RocketMQ(settings, seed=1) as rocketmq:
        halt = Halt(moment)
        shop = Shop(rocketmq, folder, halt, order_service)
        await shop.begin()
        asking = asyncio.create_task(shop.orders.place(ORDER_ID, THING))
        await halt.reached.wait()
        if moment in (Moment.DELIVERED, Moment.CREDITED):
            await asking  # the broker has received the COMMIT, so the customer gets the response before the kill
        await shop.kill(victim)
        on_disk = shop.on_disk()
        halt.go_on()
        heard = await _heard(asking, has_died=victim.has_order_service)
        await shop.close_dead_connections()
        await asyncio.sleep(FULL_S if victim is Victim.DISK else DOWN_S)
        await shop.restart(victim)
        if insists:
            heard = await _insist(shop, heard)
        await rocketmq.advance(minutes=QUIET_MINUTES)
        orders, credits = shop.count_orders(), shop.count_credits()
        await shop.end()
        return Outcome(moment, victim, on_disk, heard, shop.notebook, orders, credits, rocketmq.timeline(ORDER_ID))


async def _heard(asking: asyncio.Task[str], *, has_died: bool) -> str | None:
    """Returns the response to the customer, or None if a killed process sent none.

    A killed process sends no response, even if its client returned UNKNOWN.
    """
    is_answered = asking.done() or not has_died
    try:
        answer = await asking
    except ProcessDied:
        return None
    return answer if is_answered else None


async def _insist(shop: Shop, heard: str | None) -> str | None:
    for _ in range(MAX_REQUESTS):
        if heard == PLACED:
            break
        await asyncio.sleep(1)
        heard = await shop.orders.place(ORDER_ID, THING)
    return heard
