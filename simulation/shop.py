"""The shop in a simulated world: its databases, Redis, and its services as programs that start again after each death."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from rocketmq_broker.testing.simulation.process import Process
from rocketmq_broker.testing.simulation.world import Program, SimulatedWorld
from simulation.celery_model import SimulatedRedis, WorkerProcess
from simulation.credit_process import CreditProcess
from simulation.databases import SimulatedDatabase
from simulation.inventory_process import InventoryProcess
from simulation.order_process import OrderProcess
from simulation.settings import ShopSettings

ORDERS: Final = "orders-database"
CREDITS: Final = "credits-database"
INVENTORY: Final = "inventory-database"


class Shop:
    """Everything that the services of one world need, and the services by the names of their programs."""

    def __init__(
        self, world: SimulatedWorld, settings: ShopSettings, on_fault: Callable[[str, str], object] = lambda place, word: None
    ) -> None:
        """`on_fault` is told of each effect of a fault: the database or "redis", and a word."""
        self.world = world
        self.settings = settings
        self.databases = {name: self._database(name, on_fault) for name in (ORDERS, CREDITS, INVENTORY)}
        self.redis = SimulatedRedis(
            world.loop, world.history, world.chance("redis"), on_fault=lambda word: on_fault("redis", word)
        )
        self.order_services: dict[str, OrderProcess] = {}
        """The running ones. One whose process has died is replaced when its program starts again."""
        self._order_programs: list[str] = []
        self._copies: list[SimulatedDatabase] = []
        self._uncounted = sorted(settings.stock.items())

    def order_service(self, name: str) -> Program:
        """Adds a machine with an order service, not started."""

        async def begin(process: Process) -> None:
            service = OrderProcess(process, self.databases[ORDERS], self.settings)
            await service.start()
            self.order_services[name] = service

        self._order_programs.append(name)
        return self._program(name, begin)

    def credit_service(self, name: str) -> Program:
        """Adds a machine with a credit service, not started."""

        async def begin(process: Process) -> None:
            await CreditProcess(process, self.databases[CREDITS], self.redis, self.settings).start()

        return self._program(name, begin)

    def worker(self, name: str) -> Program:
        """Adds a machine with a Celery worker of the credit service, not started."""
        machine = self.world.machine(name)

        async def begin(process: Process) -> None:
            worker = WorkerProcess(
                process,
                self.redis,
                self.databases[CREDITS],
                slots=self.settings.worker_slots,
                new_child=lambda: self.world.new_process(name, machine, 0),
            )
            await worker.start()

        return self.world.program(name, machine, begin)

    def inventory_service(self, name: str) -> Program:
        """Adds a machine with an inventory service, not started."""

        async def begin(process: Process) -> None:
            service = InventoryProcess(process, self.databases[INVENTORY], self.settings)
            while self._uncounted:
                await service.set_stock(*self._uncounted[-1])
                self._uncounted.pop()
            await service.start()

        return self._program(name, begin)

    def serving(self) -> list[OrderProcess]:
        """Returns the order services that take requests now, in the order of their names."""
        return [
            self.order_services[name]
            for name in sorted(self._order_programs)
            if self.world.programs[name].is_ready.is_set() and name in self.order_services
        ]

    def old_copy(self, name: str) -> SimulatedDatabase:
        """Returns a copy of a database as it is now."""
        copy = self.databases[name].copied()
        self._copies.append(copy)
        return copy

    def close(self) -> None:
        """Closes the databases, after the world's end."""
        for database in (*self.databases.values(), *self._copies):
            with suppress(Exception):
                database.close()

    def _program(self, name: str, begin: Callable[[Process], object]) -> Program:
        return self.world.program(name, self.world.machine(name), begin)  # type: ignore[arg-type]

    def _database(self, name: str, on_fault: Callable[[str, str], object]) -> SimulatedDatabase:
        world = self.world
        return SimulatedDatabase(
            name, world.history, world.chance("database", name), loop=world.loop, on_fault=lambda word: on_fault(name, word)
        )
