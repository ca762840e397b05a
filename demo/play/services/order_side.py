"""The order service of a session, with its real Flask application, database, producer and consumer, but no threads."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from flask import Flask
from sqlalchemy import Engine

from demo.play.services.compensating import PageCompensation
from demo.play.services.mistakes import ForgetfulAnswers, send_inside
from demo.play.services.side import ORDER_SERVICE, DrawnStep, PageClientLoop, ProcessDied, Surroundings, Tables, rows_of, short_id
from demo.play.words import CannotPress
from order_service.adapters.order_broker import PRODUCER_GROUP, OrderBroker, compensation_consumer
from order_service.adapters.order_store import SqlOrderStore
from order_service.domain.order import Cancellation
from order_service.entrypoints.http import create_app
from order_service.service_layer.attempt import Attempt
from order_service.service_layer.cancelling import OrderCancelling
from order_service.service_layer.transaction_listener import transaction_listeners
from rocketmq_broker.admin.timeline.event import Arrow
from rocketmq_broker.client import LocalTransactionState, RemotingCommand, TransactionListener
from rocketmq_broker.message import Message, MessageExt
from service_runtime.failing.armed_failpoints import FailedOnPurpose
from service_runtime.messaging.consumer_thread import ConsumerThread

ORDER_LIMIT_CENTS: Final = 1_000_000
SLOW_S: Final = 8.0
"""The seconds by which the local transaction of a slow order starts late, so that a check-back comes first."""
_SEND_TIMEOUT_MS: Final = 3_000


class OrderSide:
    """The order service. Its process can be killed and restarted. Its database survives."""

    def __init__(self, engine: Engine, around: Surroundings) -> None:
        """Creates the service without starting it. `engine` connects to the migrated order database."""
        self._engine, self._around = engine, around
        self.dies_before_commit = False
        """Whether the process dies at the next order, between local commit and COMMIT."""
        self.is_slow = False
        """Whether the next order's local transaction starts SLOW_S late."""
        self.forgets = False
        """Whether check-backs are answered from memory, with ROLLBACK for what it lacks. This is a mistake of articles."""
        self.sends_inside = False
        """Whether orders are sent as plain messages before the local commit. This is a mistake of articles."""
        self.is_dead = False
        """Whether the process was killed. A dead process sends nothing, not even a farewell."""
        self._loop = PageClientLoop(around.loop)
        self._app: Flask | None = None
        self._broker: OrderBroker | None = None
        self._consumer: ConsumerThread | None = None

    def start(self) -> None:
        """Starts a process of the service, which joins its producer group and its consumer group."""
        around = self._around
        self._loop = PageClientLoop(around.loop)
        self.is_dead = False
        store = SqlOrderStore(self._engine, around.world)
        real = transaction_listeners(store, order_limit_cents=ORDER_LIMIT_CENTS, now_ms=around.world.wall_ms)
        listeners: Mapping[str, Any] = {topic: _WatchedListener(listener, self) for topic, listener in real.items()}
        broker = OrderBroker(
            listeners,
            namesrv_addr=around.namesrv_addr,
            send_timeout_ms=_SEND_TIMEOUT_MS,
            loop=self._loop,
            witness=store.history.witness,
            rpc_hook=_Wire(self),
            history=store.history,
        )
        app = create_app(store, broker, around.world)
        broker.start()
        self._broker, self._app = broker, app
        compensation = PageCompensation(OrderCancelling(store, broker, around.world.wall_ms), around.loop)
        self._consumer = compensation_consumer(
            compensation.consume, namesrv_addr=around.namesrv_addr, loop=self._loop, rpc_hook=_Wire(self)
        )
        self._consumer.start()

    @property
    def is_running(self) -> bool:
        """True if the service's process is running."""
        return self._broker is not None

    def place(self, customer: str, amount: int) -> None:
        """Sends POST /orders for a book that costs `amount` cents. Raises CannotPress if the service is not running."""
        if self._app is None:
            raise CannotPress("the order service is not running: start it first")
        try:
            if self.sends_inside:
                send_inside(self._engine, self._around, customer, amount, dies=self._dies_now)
                return
            item = {"name": "book", "quantity": 1, "price_cents": amount}
            answer = self._app.test_client().post("/orders", json={"customer": customer, "items": [item]})
        except ProcessDied:
            self._die()
            return
        if answer.status_code >= 400:
            self.note(f"POST /orders answers {answer.status_code}: {_detail(answer.get_json())}", "refused")

    def stop(self) -> None:
        """Stops the process if it is running."""
        if self._consumer is not None:
            self._consumer.stop(1.0)
        if self._broker is not None:
            self._broker.stop()
        self._broker = self._app = self._consumer = None

    def tables(self) -> Tables:
        """Returns the rows of the order database, keyed by table name."""
        return {table: rows_of(self._engine, table) for table in ("orders", "order_items", "transactions")}

    def note(self, text: str, kind: str, step: DrawnStep | None = None) -> None:
        """Adds an event of the order service to the page's list of events."""
        self._around.note(ORDER_SERVICE, text, kind, step)

    def took_slowness(self) -> bool:
        """Returns whether the current local transaction must start late.

        Returns True once after each press of the button `slow`.
        """
        is_slow, self.is_slow = self.is_slow, False
        return is_slow

    async def die_if_armed(self, message: Message) -> None:
        """Ends the process at the order of `message` if the button `die-before-commit` was pressed.

        In this case, the method never returns.
        """
        if self._dies_now():
            self.is_dead = True
            self.note("the order service dies", "fault", _step(message, "the process dies"))
            await self._loop.die()

    def _dies_now(self) -> bool:
        is_armed, self.dies_before_commit = self.dies_before_commit, False
        return is_armed

    def _die(self) -> None:
        if not self.is_dead:
            self.note("the order service dies", "fault")
        self.is_dead = True
        self.stop()


@dataclass(frozen=True, slots=True)
class _Wire:
    """An RPC hook that drops the requests of a killed process."""

    side: OrderSide

    def do_before_request(self, address: str, request: RemotingCommand) -> None:
        """Raises FailedOnPurpose if the process was killed."""
        if self.side.is_dead:
            raise FailedOnPurpose("exit-after-local-commit")

    def do_after_response(self, address: str, request: RemotingCommand, response: RemotingCommand) -> None:
        """Does nothing."""


class _WatchedListener:
    """Wraps a transaction listener of the order service: records its steps as events, and applies the buttons' faults."""

    def __init__(self, listener: TransactionListener, side: OrderSide) -> None:
        self._listener, self._side = listener, side
        self._memory = ForgetfulAnswers()

    async def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        """Runs the local transaction, after a delay if the button `slow` was pressed.

        Never returns after the local commit if the button `die-before-commit` was pressed: the process ends.
        """
        assert isinstance(arg, Attempt)
        name, is_cancelled = _short(message), isinstance(arg.wanted, Cancellation)
        if self._side.took_slowness():
            late = f"starts {SLOW_S:g} s late"
            self._side.note(f"the local transaction of {name} {late}", "fault", _step(message, late))
            await asyncio.sleep(SLOW_S)
        decision = self._listener.execute_local_transaction(message, arg)
        assert isinstance(decision, LocalTransactionState)
        if decision is not LocalTransactionState.COMMIT_MESSAGE:
            outcome = arg.outcome.name
            self._side.note(f"local transaction of {name}: {outcome}", "refused", _step(message, outcome))
            return decision
        effect, label = ("CANCELLED", "local commit: CANCELLED") if is_cancelled else ("in the database", "local commit")
        self._side.note(f"local commit: order {name} is {effect}", "commit", _step(message, label))
        if not is_cancelled:
            await self._side.die_if_armed(message)
        self._memory.remember(message)
        return decision

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Returns the decision for a check-back, from the database or, if the first mistake is enabled, from memory."""
        if self._side.forgets:
            return self._memory.answer(message)
        answer = self._listener.check_local_transaction(message)
        assert isinstance(answer, LocalTransactionState)
        return answer


def _short(message: Message) -> str:
    return short_id(next(iter(message.keys), "?"))


def _step(message: Message, label: str) -> DrawnStep:
    return DrawnStep(message.transaction_id or "", Arrow(PRODUCER_GROUP, PRODUCER_GROUP, label))


def _detail(problem: Any) -> str:
    found = problem if isinstance(problem, dict) else {}
    return str(found.get("detail") or found.get("title") or "no reason given")
