"""Runs the inventory service's code without HTTP in a simulated process."""

from functools import partial

from inventory_service.adapters.stock_room import CONSUMER, SqlStockRoom
from inventory_service.entrypoints.process import ship_due
from inventory_service.service_layer.shipping import TAGS, instruction_of
from lab.simulation.databases.database import ShopDatabase
from lab.simulation.services.bell import SimulatedBell
from lab.simulation.services.client_loop import SimulatedClientLoop
from lab.simulation.services.listener_fault import ListenerFault
from lab.simulation.services.settings import ShopSettings
from order_messages.body import UnreadableBody
from rocketmq_broker.testing.simulation.process import SimulatedProcess
from service_runtime.inbox.inbox_listener import BatchedStore, InboxListener, inbox_consumer
from service_runtime.inbox.outbox import OutboxDrain, SenderThread


class InventoryProcess:
    """An inventory service. It runs until its process ends, and must be created in that process."""

    def __init__(self, process: SimulatedProcess, database: ShopDatabase, settings: ShopSettings, fault: ListenerFault) -> None:
        """Creates the service without connecting. `fault` may make its listener fail."""
        self.process = process
        address, timeout_ms = settings.namesrv_addr, settings.send_timeout_ms
        room = self._stock_room = SqlStockRoom(database.engine_for(process), process.world)
        loop = SimulatedClientLoop(process)
        self._sender = SenderThread(CONSUMER, namesrv_addr=address, send_timeout_ms=timeout_ms, loop=loop)
        outbox, waiting = OutboxDrain(room.shortages, self._sender.send), database.has_waiting
        self._shortages = SimulatedBell(process, outbox.send_due, has_work=partial(waiting, room.shortages.consumer))
        self._shipping = SimulatedBell(
            process, lambda: ship_due(room, settings.max_tries), has_work=partial(waiting, room.inbox.consumer)
        )
        listener = InboxListener(
            read=instruction_of,
            unreadable=UnreadableBody,
            store=BatchedStore(room.store, process.world),
            ring=self._shipping.ring,
        )
        results = room.positions if settings.saves_positions else None
        loop = SimulatedClientLoop(process)
        self._consumer = inbox_consumer(CONSUMER, TAGS, fault.around(listener), namesrv_addr=address, loop=loop, results=results)

    async def start(self) -> None:
        """Joins the groups, and returns when the service is consuming messages."""
        self._shortages.start()
        self._shipping.start()
        await self.process.start_thread(self._start)

    async def set_stock(self, article: str, available: int) -> None:
        """Sets the stock of an article. An article whose stock was never set is never short."""
        await self.process.start_thread(self._stock_room.set_stock, article, available)

    def _start(self) -> None:
        self._sender.start()
        self._consumer.start()
