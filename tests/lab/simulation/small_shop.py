"""A world with one broker and one shop, whose events the test chooses."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from lab.simulation.action_kinds import ActionKind
from lab.simulation.customers.customers import AnsweredRequest, CustomerAction, Customers
from lab.simulation.services.settings import ShopSettings
from lab.simulation.services.shop import SimulatedShop
from order_service.domain.order import Item
from rocketmq_broker.testing.simulation.servers import broker, name_server
from rocketmq_broker.testing.simulation.world import Program, SimulatedWorld

BROKER_SETTINGS = {"transactionCheckInterval": "5000", "transactionTimeOut": "6000"}
TEA = (Item("tea", 1, 250),)


@dataclass
class SmallShop:
    """A shop, available while its world runs and afterwards."""

    world: SimulatedWorld
    shop: SimulatedShop
    customers: Customers
    asked: list[AnsweredRequest] = field(default_factory=list)
    fired: list[tuple[str, str]] = field(default_factory=list)

    def place(self, number: int, at_s: float, *, later: bool = False, key: bool = True, items: tuple[Item, ...] = TEA) -> None:
        """Schedules the placing of Ada's order `number` at `at_s` seconds.

        `later` is True for an order that is paid later. Without `key`, the request has no idempotency key.
        """
        name = f"key-{number}" if key else None
        action = CustomerAction(ActionKind.PLACE, "ada", number, items, name, is_paid_later=later)
        self.at(at_s, self.customers.begin, action)

    def act(self, kind: ActionKind, number: int, at_s: float) -> None:
        """Schedules an action of Ada on her order at that time."""
        self.at(at_s, self.customers.begin, CustomerAction(kind, "ada", number))

    def at(self, at_s: float, deed: Callable[..., object], *arguments: Any) -> None:
        """Schedules a call at that time."""
        self.world.loop.call_later(at_s, deed, *arguments)

    def program(self, name: str) -> Program:
        """Returns the program of that name."""
        return self.world.programs[name]

    def rows(self, database: str, query: str) -> list[tuple[Any, ...]]:
        """Returns the rows of a query on a database."""
        return list(self.shop.databases[f"{database}-database"].reader().execute(query))

    def credits(self) -> list[tuple[str, str]]:
        """Returns the entries of the ledger by order and kind."""
        return sorted(self.rows("credits", "SELECT order_id, kind FROM credits"))

    def order_states(self) -> dict[str, str]:
        """Returns the state of each order."""
        return dict(self.rows("orders", "SELECT order_id, state FROM orders"))

    def shipments(self) -> dict[str, str]:
        """Returns the state of each shipment."""
        return dict(self.rows("inventory", "SELECT order_id, state FROM shipments"))

    def statuses(self, number: int) -> list[int | None]:
        """Returns the statuses of all responses about an order."""
        return [asked.answer.status for asked in self.asked if asked.number == number]


Story = Callable[[SmallShop], Awaitable[None] | None]


def play(story: Story, seed: int = 1, for_s: float = 60.0, **settings: Any) -> SmallShop:
    """Plays a world. Calls `story`, which schedules the events, when all programs are ready. Close the shop after use."""
    world = SimulatedWorld(seed)
    names = name_server(world)
    address = f"{names.machine.address}:9876"
    broker(world, "broker-a", address, BROKER_SETTINGS)
    shop = SimulatedShop(world, ShopSettings(address, **settings))
    small = SmallShop(world, shop, Customers(shop))
    shop.fault_observers.append(lambda place, word: small.fired.append((place, word)))
    small.customers.observers.append(small.asked.append)
    shop.order_service("orders-1")
    shop.credit_service("credits-1")
    shop.worker("worker-1")
    shop.inventory_service("inventory-1")

    async def main() -> None:
        for program in list(world.programs.values()):
            await program.start()
        told = story(small)
        if told is not None:
            await told
        await asyncio.sleep(for_s)

    world.run(main())
    return small
