"""Runs the order service's code without HTTP in a simulated process.

The model omits Flask and waitress, the limits on requests, and the wait for the database at the start.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from lab.simulation.customers.requests import PayRequest, PlaceRequest, ServiceAnswer, ServiceRequest
from lab.simulation.databases.database import ShopDatabase
from lab.simulation.services.client_loop import SimulatedClientLoop
from lab.simulation.services.listener_fault import ListenerFault
from lab.simulation.services.settings import ShopSettings
from order_messages.states import TransactionState
from order_service.adapters.order_broker import OrderBroker, compensation_consumer
from order_service.adapters.order_store import SqlOrderStore
from order_service.entrypoints.http import PROBLEM_OF
from order_service.service_layer.cancelling import OrderCancelling
from order_service.service_layer.compensation_listener import CompensationListener
from order_service.service_layer.paying import OrderPaying
from order_service.service_layer.placing import OrderPlacing
from order_service.service_layer.transaction_listener import transaction_listeners
from rocketmq_broker.client import LocalTransactionState, TransactionListener
from rocketmq_broker.message import Message, MessageExt
from rocketmq_broker.testing.simulation.network.notes import nothing
from rocketmq_broker.testing.simulation.process import SimulatedProcess
from service_runtime.http.problem import ErrorWithProblem


@dataclass
class SwitchedListener:
    """A listener that can temporarily use another database for check-backs."""

    listener: TransactionListener
    checking: TransactionListener
    on_check: Callable[[], object] = nothing
    """Called at each check-back."""
    since_ms: int = 0
    """The other database is used only for half messages that were sent since this time, in milliseconds since the epoch."""

    def execute_local_transaction(
        self, message: Message, arg: object
    ) -> LocalTransactionState | Awaitable[LocalTransactionState]:
        """Runs the local transaction."""
        return self.listener.execute_local_transaction(message, arg)

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState | Awaitable[LocalTransactionState]:
        """Returns the decision for a check-back."""
        if message.born_timestamp < self.since_ms:
            return self.listener.check_local_transaction(message)
        self.on_check()
        return self.checking.check_local_transaction(message)


class OrderProcess:
    """An order service. It runs until its process ends, and must be created in that process."""

    def __init__(self, process: SimulatedProcess, database: ShopDatabase, settings: ShopSettings, fault: ListenerFault) -> None:
        """Creates the service without connecting. `fault` may make the listener of its consumer fail."""
        self.process = process
        self._settings = settings
        world = process.world
        store = SqlOrderStore(database.engine_for(process), world)
        self._listeners = {topic: SwitchedListener(listener, listener) for topic, listener in self._listeners_of(store).items()}
        listeners: Mapping[str, TransactionListener] = dict(self._listeners)
        broker = OrderBroker(
            listeners,
            namesrv_addr=settings.namesrv_addr,
            send_timeout_ms=settings.send_timeout_ms,
            loop=SimulatedClientLoop(process),
            witness=store.history.witness,
        )
        deadline_ms = round(settings.payment_deadline_s * 1000)
        self._broker = broker
        self._placing = OrderPlacing(store, broker, deadline_ms, world.wall_ms, world.new_uuid)
        self._paying = OrderPaying(store, world.wall_ms)
        self._cancelling = OrderCancelling(store, broker, world.wall_ms)
        listener = CompensationListener(OrderCancelling(store, broker, world.wall_ms))
        self._consumer = compensation_consumer(
            fault.around(listener), namesrv_addr=settings.namesrv_addr, loop=SimulatedClientLoop(process)
        )

    async def start(self) -> None:
        """Joins the producer group and the consumer group, and returns when the service is ready."""
        await self.process.start_thread(self._start)

    def check_back_from(self, copy: ShopDatabase | None, on_check: Callable[[], object] = nothing, since_ms: int = 0) -> None:
        """Makes check-backs use the database `copy`. If `copy` is None, they use the service's own database again.

        `on_check` is called at each check-back. `copy` is not used for half messages that were sent before `since_ms`.
        """
        checking: Mapping[str, TransactionListener] = {topic: own.listener for topic, own in self._listeners.items()}
        if copy is not None:
            checking = self._listeners_of(SqlOrderStore(copy.engine_for(self.process), self.process.world))
        for topic, listener in self._listeners.items():
            listener.checking, listener.on_check, listener.since_ms = checking[topic], on_check, since_ms

    def answer(self, request: ServiceRequest) -> ServiceAnswer:
        """Handles a request as `order_service.entrypoints.http` does, and returns the response.

        Call it in a thread of the process.
        """
        try:
            return self._done(request)
        except ErrorWithProblem as error:
            return ServiceAnswer(error.problem.status, text=str(error))
        except tuple(PROBLEM_OF) as error:
            problem = next(found for kind, found in PROBLEM_OF.items() if isinstance(error, kind))
            return ServiceAnswer(problem.status, text=str(error))

    def _start(self) -> None:
        self._broker.start()
        self._consumer.start()

    def _listeners_of(self, store: SqlOrderStore) -> Mapping[str, TransactionListener]:
        limit_cents, now_ms = self._settings.order_limit_cents, self.process.world.wall_ms
        return transaction_listeners(store, order_limit_cents=limit_cents, now_ms=now_ms)

    def _done(self, request: ServiceRequest) -> ServiceAnswer:
        if isinstance(request, PlaceRequest):
            return self._placed(request)
        if isinstance(request, PayRequest):
            order = self._paying.pay(request.order_id)
            return ServiceAnswer(200, order.order_id, order.state.value)
        cancelled = self._cancelling.cancel(request.order_id, request.reason)
        return ServiceAnswer(200 if cancelled.is_known else 202, cancelled.order.order_id, cancelled.order.state.value)

    def _placed(self, request: PlaceRequest) -> ServiceAnswer:
        placed = self._placing.place(
            customer=request.customer,
            items=request.items,
            currency=request.currency,
            idempotency_key=request.key,
            is_paid_later=request.is_paid_later,
        )
        return ServiceAnswer(
            202 if placed.state is TransactionState.UNKNOWN else 201,
            placed.order.order_id,
            placed.order.state.value,
            transaction_state=placed.state.value,
            is_replay=placed.is_replay,
        )
