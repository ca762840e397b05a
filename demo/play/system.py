"""The broker and the services of a session, which run on one event loop."""

import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Engine

from credit_service.adapters.ledger import CONSUMER
from credit_service.adapters.tables import MIGRATIONS as CREDIT_MIGRATIONS
from demo.play.drawing import answered, diagram_of, requests_to
from demo.play.services.credit_side import CreditSide
from demo.play.services.order_side import OrderSide
from demo.play.services.side import CREDIT_SERVICE, DrawnStep, SessionEvent, Surroundings, Tables
from demo.play.verdict import SessionVerdict, judged
from demo.play.witness import witnessed
from demo.play.words import CannotPress
from order_messages import credit_refused, order_cancelled, order_created, stock_short
from order_service.adapters.tables import MIGRATIONS as ORDER_MIGRATIONS
from rocketmq_broker.admin.console import Diagram
from rocketmq_broker.admin.progress.resetting import TO_THE_FIRST, plan_reset, reset
from rocketmq_broker.admin.timeline.event import Event
from rocketmq_broker.client import Producer
from rocketmq_broker.message.record import records_of
from rocketmq_broker.testing import RocketMQ
from rocketmq_broker.testing.journal import JournalEvent
from rocketmq_broker.testing.loops.page_loop import PageLoop
from rocketmq_broker.testing.virtual_time import without_threads
from rocketmq_broker.world import current_world
from service_runtime.database.opening import open_database

TOPIC: Final = order_created.TOPIC
CONSUMED: Final = (order_created.TOPIC, order_cancelled.TOPIC, credit_refused.TOPIC, stock_short.TOPIC)
"""The topics that a service consumes. They exist before the services start, as in production."""
_CONSUME_OFFSETS: Final = "config/consumerOffset.json"


class PlayedSystem:
    """A broker, an order service and a credit service. Their event loop runs only during `do`."""

    orders: OrderSide
    credits: CreditSide

    def __init__(self, seed: int) -> None:
        """Starts the broker and the services. Call `close` at the end."""
        self.rocketmq = RocketMQ(seed=seed)
        self.is_apache = False
        """Whether the broker behaves like Apache's."""
        self.notes: list[SessionEvent] = []
        """The events of the services."""
        self.diagram: Diagram | None = None
        """The sequence diagram of the latest order that has a half message. It stays while the broker is down."""
        self._loop = PageLoop()
        self._context = copy_context()
        self._folder = Path(tempfile.mkdtemp(prefix="play-"))
        self._engines: list[Engine] = []
        self._context.run(self._start)

    def do(self, action: Callable[["PlayedSystem"], Coroutine[Any, Any, None] | None]) -> None:
        """Calls the action, and runs the event loop until no more work is due at the current simulated time.

        If the action returns a coroutine, the event loop runs it first.
        """
        self._context.run(self._do, action)

    def verdict(self, orders: Tables, credits: Tables, log: bytes) -> SessionVerdict:
        """Compares these tables and the commit log by the rules of the reconciliation, and returns the verdict."""
        offsets = self.rocketmq.stored_file(_CONSUME_OFFSETS)
        return judged(orders, credits, log, offsets, self.rocketmq.time.wall_ns() // 1_000_000)

    def history(self) -> list[SessionEvent | JournalEvent]:
        """Returns the journal's events and the services' own ones, in the order in which they happened."""
        merged: list[SessionEvent | JournalEvent] = []
        notes = deque(self.notes)
        for position, event in enumerate(self.rocketmq.journal.events):
            while notes and notes[0].position <= position:
                merged.append(notes.popleft())
            merged.append(event)
        return [*merged, *notes]

    def log(self) -> bytes:
        """Returns the bytes of the commit log up to the end of its last record."""
        log = self.rocketmq.commit_log()
        return log[: sum(record.size for record in records_of(log))]

    def diagram_of(self, word: str) -> Diagram | None:
        """Returns the diagram of the order or the transaction with this id; None if there is none. Raises CannotPress."""
        if not self.rocketmq.is_running:
            raise CannotPress("the broker is down: start it again to see its records")
        return self._context.run(self._diagram_of, word)

    def deliver_again(self) -> None:
        """Restarts the credit service after resetting its offsets at the broker, so that all messages are delivered again.

        Raises CannotPress if the broker has no offsets of the credit service.
        """
        requests = requests_to(self.rocketmq.inspection(), self.rocketmq.broker_addr)
        plan = answered(plan_reset(requests, CONSUMER, TOPIC, TO_THE_FIRST))
        if plan is None or not plan.again:
            raise CannotPress("the broker has no offsets of the credit service yet: place an order, and let 6 seconds pass")
        self.credits.stop()
        answered(reset(requests, CONSUMER, TOPIC, TO_THE_FIRST))
        self.credits.start()
        self._note(
            CREDIT_SERVICE,
            "the credit service starts again, without its offsets",
            "fault",
        )

    def close(self) -> None:
        """Stops the broker and the services, and removes the databases."""
        self._context.run(self._close)

    # internals

    def _start(self) -> None:
        with without_threads():
            self._loop.complete(self.rocketmq.start())
            with self.rocketmq.inside():
                around = Surroundings(self._loop, current_world(), self.rocketmq.namesrv_addr, self._note)
                self.orders = OrderSide(self._opened("orders", ORDER_MIGRATIONS), around)
                self.credits = CreditSide(self._opened("credits", CREDIT_MIGRATIONS), around)
                self._loop.complete(self._create_topics())
                self.orders.start()
                self.credits.start()
            self._loop.complete(self.rocketmq.settle())

    def _opened(self, name: str, migrations: str) -> Engine:
        engine = open_database(f"sqlite:///{self._folder / name}.db", migrations=migrations, start_timeout_s=10)
        self._engines.append(engine)
        return engine

    async def _create_topics(self) -> None:
        async with Producer("topics", namesrv_addr=self.rocketmq.namesrv_addr) as producer:
            for topic in CONSUMED:
                await producer.create_topic(topic)

    def _do(self, action: Callable[["PlayedSystem"], Coroutine[Any, Any, None] | None]) -> None:
        with without_threads(), self.rocketmq.inside():
            work = action(self)
            if work is not None:
                self._loop.complete(work)
            self._loop.complete(self.rocketmq.settle())
            if self.rocketmq.is_running and (transactions := self.rocketmq.inspection().transactions()):
                latest = transactions[-1]
                self.diagram = self._diagram_of(next(iter(latest.keys), latest.transaction_id))

    def _diagram_of(self, word: str) -> Diagram | None:
        return diagram_of(self.rocketmq.inspection(), self.rocketmq.broker_addr, word, self._witnessed)

    def _witnessed(self, transaction_id: str, order_id: str | None) -> list[Event]:
        time = self.rocketmq.time
        begun_ms = time.wall_ns() // 1_000_000 - round(time.elapsed_s * 1000)
        return list(witnessed(self.history(), transaction_id, order_id, begun_ms))

    def _close(self) -> None:
        with without_threads(), self.rocketmq.inside():
            self.orders.stop()
            self.credits.stop()
            self._loop.complete(self.rocketmq.stop())
        self._loop.close()
        for engine in self._engines:
            engine.dispose()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _note(self, who: str, text: str, kind: str, step: DrawnStep | None = None) -> None:
        position, at_s = len(self.rocketmq.journal.events), self.rocketmq.time.elapsed_s
        self.notes.append(SessionEvent(position, at_s, who, text, kind, step))
