"""Plays one cell in its own event loop, in the time of the test double: minutes take milliseconds."""

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
"""The time for which a process is down, or the disk full."""
QUIET_MINUTES: Final = 3
"""Longer than a check-back or a redelivery takes to come."""
MAX_REQUESTS: Final = 10


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one cell."""

    moment: Moment
    victim: Victim
    on_disk: list[str]
    """Just after the kill."""
    heard: str | None
    """The customer's answer; None without one."""
    notebook: Notebook
    orders: int
    credits: int
    story: str
    """The broker's events, each with its time."""

    @property
    def is_consistent(self) -> bool:
        """True if there is a credit for the order, and none without it."""
        return self.orders == self.credits

    @property
    def finished_by(self) -> str:
        """The part of the system that finished the order."""
        told = [f"check-back: {answer}, by order service {life}" for life, answer in self.notebook.checks[-1:]]
        deliveries = self.notebook.deliveries
        if len(deliveries) > 1:
            told.append(f"redelivery to credit service {deliveries[-1]}")
        elif deliveries[-1:] not in ([], [1]):
            told.append(f"delivery to credit service {deliveries[-1]}")
        nobody = "nobody: nothing had begun" if not self.orders else "nobody: it went on" if self.credits else "nobody at all"
        return "; ".join(told) or nobody


def play(
    moment: Moment,
    victim: Victim,
    *,
    settings: Mapping[str, str] | None = None,
    insists: bool = False,
    order_service: Callable[..., OrderService] = OrderService,
) -> Outcome:
    """Returns the cell's outcome; always the same. A customer who `insists` repeats the request until the order is placed."""
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
            await asking  # COMMIT is at the broker, so the customer has the answer
        await shop.kill(victim)
        on_disk = shop.on_disk()
        halt.go_on()
        heard = await _heard(asking, has_died=victim.has_order_service)
        await shop.bury()
        await asyncio.sleep(FULL_S if victim is Victim.DISK else DOWN_S)
        await shop.raise_the_dead(victim)
        if insists:
            heard = await _insist(shop, heard)
        await rocketmq.advance(minutes=QUIET_MINUTES)
        orders, credits = shop.count_orders(), shop.count_credits()
        await shop.end()
        return Outcome(moment, victim, on_disk, heard, shop.notebook, orders, credits, rocketmq.timeline(ORDER_ID))


async def _heard(asking: asyncio.Task[str], *, has_died: bool) -> str | None:
    """Returns the answer to the customer. A dead process sends none, even if the client's last word was UNKNOWN."""
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
