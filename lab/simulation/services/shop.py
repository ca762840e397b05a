"""Runs the shop in a simulation: its databases, Redis, and its services as programs that restart after a kill."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from lab.simulation.databases.database import ShopDatabase
from lab.simulation.services.celery_model import SimulatedRedis, WorkerProcess
from lab.simulation.services.credit_process import CreditProcess
from lab.simulation.services.inventory_process import InventoryProcess
from lab.simulation.services.listener_fault import ListenerFault
from lab.simulation.services.order_process import OrderProcess
from lab.simulation.services.settings import ShopSettings
from lab.simulation.shapes import CREDITS_DATABASE, INVENTORY_DATABASE, ORDERS_DATABASE
from rocketmq_broker.testing.simulation.process import SimulatedProcess
from rocketmq_broker.testing.simulation.world import Begin, Program, SimulatedWorld


class SimulatedShop:
    """The services of a simulation with their databases and Redis."""

    def __init__(self, world: SimulatedWorld, settings: ShopSettings) -> None:
        """Creates a shop without machines. Call `close` after the simulation has ended."""
        self.world = world
        self.settings = settings
        self.fault_observers: list[Callable[[str, str], object]] = []
        """Callbacks for each fault that affects a service.

        The arguments are the name of the database or "redis", and a word for the fault.
        """
        self.databases = {name: self._database(name) for name in (ORDERS_DATABASE, CREDITS_DATABASE, INVENTORY_DATABASE)}
        self.redis = SimulatedRedis(
            world.loop, world.history, world.chance("redis"), on_fault=lambda word: self._met("redis", word)
        )
        self._database_of: dict[str, str] = {}
        self._copies: list[ShopDatabase] = []
        self.order_services: dict[str, OrderProcess] = {}
        """The running order services, keyed by name. If a service is killed, it is replaced when its program restarts."""
        self.listeners: dict[str, ListenerFault] = {}
        """The faults of the services' listeners, keyed by the name of the service."""
        self._order_programs: list[str] = []
        self._uncounted = sorted(settings.stock.items())

    def order_service(self, name: str) -> Program:
        """Adds a machine with a stopped order service."""

        async def begin(process: SimulatedProcess) -> None:
            service = OrderProcess(process, self.databases[ORDERS_DATABASE], self.settings, self._listener(name))
            await service.start()
            self.order_services[name] = service

        self._order_programs.append(name)
        return self._program(name, begin, ORDERS_DATABASE)

    def credit_service(self, name: str) -> Program:
        """Adds a machine with a stopped credit service."""

        async def begin(process: SimulatedProcess) -> None:
            database, listener = self.databases[CREDITS_DATABASE], self._listener(name)
            await CreditProcess(process, database, self.redis, self.settings, listener).start()

        return self._program(name, begin, CREDITS_DATABASE)

    def worker(self, name: str) -> Program:
        """Adds a machine with a stopped Celery worker of the credit service."""

        async def begin(process: SimulatedProcess) -> None:
            machine = self.world.machines[name]
            worker = WorkerProcess(
                process,
                self.redis,
                self.databases[CREDITS_DATABASE],
                self.settings.of_worker,
                new_child=lambda: self.world.new_process(name, machine, 0),
                on_error=lambda error: self.world.errors.append(f"a task of {name} ends with {type(error).__name__}: {error}"),
            )
            await worker.start()

        return self._program(name, begin, CREDITS_DATABASE)

    def inventory_service(self, name: str) -> Program:
        """Adds a machine with a stopped inventory service."""

        async def begin(process: SimulatedProcess) -> None:
            service = InventoryProcess(process, self.databases[INVENTORY_DATABASE], self.settings, self._listener(name))
            while self._uncounted:
                await service.set_stock(*self._uncounted[-1])
                self._uncounted.pop()
            await service.start()

        return self._program(name, begin, INVENTORY_DATABASE)

    def serving(self) -> list[OrderProcess]:
        """Returns the order services that accept requests, sorted by name."""
        return [
            self.order_services[name]
            for name in sorted(self._order_programs)
            if self.world.programs[name].is_ready.is_set() and name in self.order_services
        ]

    def database_of(self, program: str) -> ShopDatabase:
        """Returns the database of a program."""
        return self.databases[self._database_of[program]]

    def replica_of(self, database: str, *, is_promoted: bool = False) -> ShopDatabase:
        """Returns a replica with the current rows. A promoted replica accepts writes."""
        copy = self.databases[database].replica(is_promoted=is_promoted)
        self._copies.append(copy)
        return copy

    def close(self) -> None:
        """Closes the databases. Call this after the simulation has ended."""
        for database in (*self.databases.values(), *self._copies):
            with suppress(Exception):
                database.close()

    def _listener(self, name: str) -> ListenerFault:
        return self.listeners.setdefault(name, ListenerFault())

    def _program(self, name: str, begin: Begin, database: str) -> Program:
        self._database_of[name] = database
        return self.world.program(name, self.world.machine(name), begin)

    def _database(self, name: str) -> ShopDatabase:
        world = self.world
        chance, on_fault = world.chance("database", name), partial(self._met, name)
        return ShopDatabase(name, world.history, chance, loop=world.loop, on_fault=on_fault)

    def _met(self, place: str, word: str) -> None:
        for observer in self.fault_observers:
            observer(place, word)
