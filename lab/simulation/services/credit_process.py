"""Runs the credit service's code without HTTP in a simulated process, with the model of Celery."""

from functools import partial

from credit_service.adapters.ledger import CONSUMER, Ledger
from credit_service.service_layer.crediting import TAGS, entry_of
from lab.simulation.databases.database import ShopDatabase
from lab.simulation.services.bell import SimulatedBell
from lab.simulation.services.celery_model import SimulatedRedis, task_sender
from lab.simulation.services.client_loop import SimulatedClientLoop
from lab.simulation.services.listener_fault import ListenerFault
from lab.simulation.services.settings import ShopSettings
from order_messages.body import UnreadableBody
from rocketmq_broker.testing.simulation.process import SimulatedProcess
from service_runtime.inbox.inbox_listener import BatchedStore, InboxListener, inbox_consumer
from service_runtime.inbox.outbox import OutboxDrain, SenderThread


class CreditProcess:
    """A credit service. It runs until its process ends, and must be created in that process."""

    def __init__(
        self,
        process: SimulatedProcess,
        database: ShopDatabase,
        redis: SimulatedRedis,
        settings: ShopSettings,
        fault: ListenerFault,
    ) -> None:
        """Creates the service without connecting. `fault` may make its listener fail."""
        self.process = process
        address, loop = settings.namesrv_addr, SimulatedClientLoop(process)
        ledger = Ledger(database.engine_for(process), process.world)
        self._sender = SenderThread(CONSUMER, namesrv_addr=address, send_timeout_ms=settings.send_timeout_ms, loop=loop)
        tasks, outbox = task_sender(redis, process, ledger.inbox), OutboxDrain(ledger.refusals, self._sender.send)
        self._tasks = SimulatedBell(process, tasks.send_if_due, has_work=partial(database.has_waiting, ledger.inbox.consumer))
        self._refusals = SimulatedBell(process, outbox.send_due, has_work=partial(database.has_waiting, ledger.refusals.consumer))
        listener = InboxListener(
            read=entry_of, unreadable=UnreadableBody, store=BatchedStore(ledger.store, process.world), ring=self._tasks.ring
        )
        results = ledger.positions if settings.saves_positions else None
        loop = SimulatedClientLoop(process)
        self._consumer = inbox_consumer(CONSUMER, TAGS, fault.around(listener), namesrv_addr=address, loop=loop, results=results)

    async def start(self) -> None:
        """Joins the groups, and returns when the service is consuming messages."""
        self._tasks.start()
        self._refusals.start()
        await self.process.start_thread(self._start)

    def _start(self) -> None:
        self._sender.start()
        self._consumer.start()
