"""Runs one approach in a simulation of order process, credit process and broker, with the faults of a plan."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from rocketmq_broker.client import Producer
from rocketmq_broker.testing.simulation.faults import EFFECTS, FaultInjector
from rocketmq_broker.testing.simulation.plan import Plan, PlannedEvent
from rocketmq_broker.testing.simulation.process import SimulatedProcess
from rocketmq_broker.testing.simulation.servers import NAME_SERVER_PORT, broker, name_server
from rocketmq_broker.testing.simulation.world import SimulatedWorld
from tutorials.race.brokers import RacedBroker
from tutorials.race.credits import Credits
from tutorials.race.environment import Environment, TaskQueue
from tutorials.race.judge import Verdict, judge
from tutorials.race.order import TOPIC, Order
from tutorials.race.order_database import OrderDatabase
from tutorials.race.process import Process
from tutorials.race.searching.drawing import PLACE
from tutorials.race.searching.searched_faults import SearchedFaults
from tutorials.race.way import Way

SETTLES_S: Final = 400.0
"""The time in seconds that the simulation continues after the faults. It is long enough for all check-backs and retries."""
_AFTER_S: Final = 1.0
"""Additional time in seconds before the faults end. It is needed because the last fault may begin at the plan's end."""
_BROKER: Final = {"transactionTimeOut": "6000", "transactionCheckInterval": "20000", "transactionCheckMax": "15"}


class WorldsBroker(RacedBroker):
    """The broker of a simulation. The simulation kills and restarts it according to the plan."""

    slow_commit_s = (0.0, 0.0)

    def __init__(self, seed: int, folder: Path) -> None:
        """Creates a simulation with a name server and a broker."""
        self.world = SimulatedWorld(seed)
        self.namesrv_addr = f"{name_server(self.world).machine.address}:{NAME_SERVER_PORT}"
        self.program = broker(self.world, "broker-a", self.namesrv_addr, _BROKER)

    async def __aenter__(self) -> Self:
        """Starts the name server and the broker."""
        for program in list(self.world.programs.values()):
            await program.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Does nothing, because the simulation stops the broker."""

    @property
    def is_running(self) -> bool:
        """True while the broker is running."""
        return self.program.is_ready.is_set()

    @property
    def now_s(self) -> float:
        """The simulated time since the start in seconds."""
        return self.world.elapsed_s

    async def pause(self, seconds: float) -> None:
        """Waits for `seconds` of simulated time."""
        await asyncio.sleep(seconds)

    async def kill(self) -> None:
        """Kills the broker, like kill -9. The simulation restarts it."""
        self.program.kill()

    async def restart(self) -> None:
        """Waits until the broker is running again."""
        await self.program.is_ready.wait()

    def lose_answer_about(self, order_id: str) -> None:
        """Does nothing, because the plan of the simulation injects the faults."""

    def lose_next_decision(self) -> None:
        """Does nothing, because the plan of the simulation injects the faults."""

    async def come_to_rest(self) -> None:
        """Waits SETTLES_S seconds, after which no check-back or retry is due."""
        await asyncio.sleep(SETTLES_S)

    def count_records(self) -> int:
        """Returns 0, because the search does not use the number."""
        return 0


def play(way: type[Way], plan: Plan) -> Verdict:
    """Runs an approach with a plan and returns the comparison of both databases. The same plan gives the same result."""
    with tempfile.TemporaryDirectory(prefix="race-") as folder:
        world = _RacedWorld(way, plan, Path(folder).resolve())
        return world.played()


class _RacedWorld:
    def __init__(self, way: type[Way], plan: Plan, folder: Path) -> None:
        self._way_class = way
        self._plan = plan
        self._broker = WorldsBroker(plan.seed, folder)
        tasks = TaskQueue()
        self._faults = SearchedFaults(tasks)
        self._environment = Environment(self._broker, self._faults, folder, tasks)
        self._way: tuple[SimulatedProcess, Way] | None = None
        self._requested_at_s: dict[str, float] = {}
        self._customers = self._broker.world.chance("customers")
        self._closing: list[Callable[[], None]] = []
        OrderDatabase.create(self._environment.order_file, way.schema)

    def played(self) -> Verdict:
        world = self._broker.world
        try:
            world.run(self._play())
        finally:
            for close in self._closing:
                close()
        return judge(self._environment.order_file, self._environment.credit_file, self._requested_at_s)

    async def _play(self) -> None:
        world, plan = self._broker.world, self._plan
        async with self._broker:
            await world.program("topics", world.machine("topics"), self._create_topic).start()
            await world.program("credits", world.machine("credits"), self._begin_credits).start()
            await world.program("orders", world.machine("orders"), self._begin_orders).start()
            injector = FaultInjector(world, {**EFFECTS, **self._faults.effects()})
            for event in plan.events:
                if event.what == PLACE:
                    world.loop.call_later(event.at_s, self._ask, event)
                else:
                    injector.schedule(event)
            await asyncio.sleep(plan.ends_s + _AFTER_S)
            await injector.stop()
            await self._broker.come_to_rest()

    async def _create_topic(self, process: SimulatedProcess) -> None:
        async with Producer("topics", namesrv_addr=self._environment.namesrv_addr) as topics:
            await topics.create_topic(TOPIC)

    async def _begin_orders(self, process: SimulatedProcess) -> None:
        life = Process(self._environment)
        self._dies_with(process, life.database.close)
        way = self._way_class(life)
        await way.start()
        self._way = process, way

    async def _begin_credits(self, process: SimulatedProcess) -> None:
        credits = Credits(self._environment)
        self._dies_with(process, credits.close)
        await self._way_class.consume(credits)

    def _dies_with(self, process: SimulatedProcess, close: Callable[[], None]) -> None:
        """Registers `close` to be called when the process dies, and again when the simulation ends."""
        process.on_death(close)
        self._closing.append(close)

    def _ask(self, event: PlannedEvent) -> None:
        """Places an order as a customer. Does nothing if the order process is not running."""
        order = Order(event.whole("order"), self._customers.randrange(100, 50_000))
        if self._way is not None and self._way[0].is_alive:
            process, way = self._way
            self._requested_at_s[order.order_id] = self._broker.now_s
            process.run(_placed(way, order))


async def _placed(way: Way, order: Order) -> None:
    with suppress(Exception):  # the customer gets an error
        await way.place(order)
