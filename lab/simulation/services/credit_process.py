"""Runs the credit service's code without HTTP in a simulated process, with the model of Celery or with the ledger itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from credit_service.adapters.celery_crediting import CeleryCrediting
from credit_service.adapters.ledger import Ledger, LedgerUnavailable
from credit_service.adapters.order_consumer import order_consumer
from credit_service.adapters.refusal_producer import PRODUCER_GROUP, RefusalProducer
from credit_service.domain.credit import Credit, CreditOutcome
from credit_service.service_layer.crediting import Crediting, CreditingFailed, CreditingUnavailable
from credit_service.service_layer.fair_crediting import FairCrediting
from credit_service.service_layer.gathered_crediting import GatheredCrediting
from credit_service.service_layer.order_listener import CreditingListener
from credit_service.service_layer.patient_crediting import PatientCrediting
from credit_service.service_layer.refusing import Refusing
from lab.simulation.databases.database import SimulatedDatabase
from lab.simulation.services.celery_model import SimulatedRedis
from lab.simulation.services.client_loop import SimulatedClientLoop
from lab.simulation.services.settings import ShopSettings
from rocketmq_broker.testing.simulation.process import SimulatedProcess
from service_runtime.failing.holds import Holds
from service_runtime.failing.refusals import Doubts
from service_runtime.messaging.sender_thread import SenderThread


@dataclass(frozen=True, slots=True)
class CreditingByItself:
    """Writes credits in the consumer's own threads, without Celery (`service_layer.crediting.Crediting`)."""

    ledger: Ledger

    def credit(self, credits: Sequence[Credit], *, is_again: bool, is_given_up: Callable[[], bool]) -> list[CreditOutcome | None]:
        """Returns the outcome of each credit."""
        try:
            return list(self.ledger.credit(credits))
        except LedgerUnavailable as error:
            raise CreditingUnavailable(str(error)) from error
        except Exception as error:
            raise CreditingFailed(f"{type(error).__name__}: {error}") from error


class CreditProcess:
    """A credit service from its start to the end of its process. Must be created in the process."""

    def __init__(
        self, process: SimulatedProcess, database: SimulatedDatabase, redis: SimulatedRedis, settings: ShopSettings
    ) -> None:
        """Creates the service without connecting."""
        self.process = process
        world, threads = process.world, settings.consumer_threads
        ledger, holds = Ledger(database.engine_for(process), world), Holds(now_s=world.steady_s)
        self._sender = _sender(process, settings) if settings.cancels_refused else None
        refusing = None
        if self._sender is not None:
            refusing = Refusing(ledger, RefusalProducer(self._sender), settings.max_reconsume_times)
        crediting: Crediting = CreditingByItself(ledger)
        if settings.credits_by_celery:
            crediting = CeleryCrediting(redis.tasks_for(process), world, timeout_s=settings.task_timeout_s)
        gathered = GatheredCrediting(crediting, world, batch_size=settings.batch_size)
        patient = PatientCrediting(crediting, holds, threads=threads, gathered=gathered)
        fair = FairCrediting(patient, Doubts(holds, threads, world.steady_s, ledger))
        self._consumer = order_consumer(
            CreditingListener(fair, refusing),
            namesrv_addr=settings.namesrv_addr,
            threads=threads,
            batch_size=settings.batch_size,
            max_reconsume_times=settings.max_reconsume_times,
            loop=SimulatedClientLoop(process),
        )

    async def start(self) -> None:
        """Joins the groups and returns when the service consumes."""
        await self.process.start_thread(self._start)

    async def stop(self) -> None:
        """Leaves the groups, like a service that is stopped."""
        await self.process.start_thread(self._stop)

    def _start(self) -> None:
        if self._sender is not None:
            self._sender.start()
        self._consumer.start()

    def _stop(self) -> None:
        self._consumer.stop(10.0)
        if self._sender is not None:
            self._sender.stop()


def _sender(process: SimulatedProcess, settings: ShopSettings) -> SenderThread:
    address, timeout_ms = settings.namesrv_addr, settings.send_timeout_ms
    return SenderThread(PRODUCER_GROUP, namesrv_addr=address, send_timeout_ms=timeout_ms, loop=SimulatedClientLoop(process))
