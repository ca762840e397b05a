"""Runs the inventory service's code without HTTP in a simulated process."""

from __future__ import annotations

from inventory_service.adapters.order_consumer import order_consumer
from inventory_service.adapters.shortage_producer import PRODUCER_GROUP, ShortageProducer
from inventory_service.adapters.stock_room import SqlStockRoom
from inventory_service.service_layer.order_listener import ShippingListener
from lab.simulation.databases.database import SimulatedDatabase
from lab.simulation.services.client_loop import SimulatedClientLoop
from lab.simulation.services.settings import ShopSettings
from rocketmq_broker.testing.simulation.process import SimulatedProcess
from service_runtime.failing.holds import Holds
from service_runtime.failing.refusals import Doubts
from service_runtime.messaging.sender_thread import SenderThread


class InventoryProcess:
    """An inventory service. It runs until its process ends, and must be created in that process."""

    def __init__(self, process: SimulatedProcess, database: SimulatedDatabase, settings: ShopSettings) -> None:
        """Creates the service without connecting."""
        self.process = process
        world, threads = process.world, settings.consumer_threads
        self._stock_room = SqlStockRoom(database.engine_for(process), world)
        address, timeout_ms = settings.namesrv_addr, settings.send_timeout_ms
        loop = SimulatedClientLoop(process)
        self._sender = SenderThread(PRODUCER_GROUP, namesrv_addr=address, send_timeout_ms=timeout_ms, loop=loop)
        doubts = Doubts(Holds(now_s=world.steady_s), threads, world.steady_s)
        listener = ShippingListener(self._stock_room, ShortageProducer(self._sender), doubts)
        self._consumer = order_consumer(listener, namesrv_addr=address, threads=threads, loop=SimulatedClientLoop(process))

    async def start(self) -> None:
        """Joins the groups and returns when the service consumes."""
        await self.process.start_thread(self._start)

    async def stop(self) -> None:
        """Leaves the groups, like a service that is stopped."""
        await self.process.start_thread(self._stop)

    async def set_stock(self, article: str, available: int) -> None:
        """Sets the stock of an article. An article whose stock was never set is never short."""
        await self.process.start_thread(self._stock_room.set_stock, article, available)

    def _start(self) -> None:
        self._sender.start()
        self._consumer.start()

    def _stop(self) -> None:
        self._consumer.stop(10.0)
        self._sender.stop()
