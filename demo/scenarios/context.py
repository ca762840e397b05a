"""The actions of scenarios, such as killing processes, arming failpoints, placing orders, and reading both databases."""

import asyncio
import json
import sqlite3
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

import httpx
from redis import Redis

from demo.asking import ask
from demo.books import CREDIT_DATABASE
from demo.commit_log import ORDERS_TOPIC, Trace, read_traces, read_traces_of
from demo.errors import DemoError
from demo.processes import Process
from demo.scenarios.failpoints import FailpointFolder
from demo.scenarios.ledger import Ledgers
from demo.system import System
from demo.up.keeper import Keeper
from rocketmq_broker.admin.broker_requests.figures import consume_stats
from rocketmq_broker.admin.dead_letters.finding import find_dead_letters
from rocketmq_broker.admin.errors import AdminError, Refused
from rocketmq_broker.admin.session import Session, Target, opened_session
from rocketmq_broker.admin.timeline.event import BROKER, Arrow
from rocketmq_broker.client import ClientError, LocalTransactionState, TransactionProducer, local_transaction
from rocketmq_broker.message import Message, MessageExt, properties
from rocketmq_broker.protocol.bodies.transaction_admin import TransactionInfo
from rocketmq_broker.protocol.headers.transaction_admin import ListPendingTransactionsRequestHeader, ShowTransactionRequestHeader

PATIENCE_S: Final = 90.0
PAYMENT_DEADLINE_S: Final = 6
"""The payment deadline of orders that are paid later, in seconds. It leaves time for two check-backs."""
_LOOK_EVERY_S: Final = 0.1
_REQUEST_S: Final = 20.0
_OTHERS_S: Final = 20.0
"""The time-out in seconds for other transactions to end. It is longer than the payment deadline."""
_CONSUMER_GROUP: Final = "credit_service"
CARELESS: Final = "careless_service"
"""The producer group of a program that sends an invalid message."""


class Interrupted(DemoError):
    """Raised if `make up` is stopped while a scenario is running."""


class Played(Protocol):
    """The interface of a scenario's run that ScenarioContext uses."""

    customer: str
    transaction_id: str | None
    key: str | None

    def note(self, what: str, arrow: Arrow | None = None) -> None:
        """Records a step with the current time."""


@dataclass(frozen=True, slots=True)
class ScenarioContext:
    """The actions that a scenario can take in one run. Methods raise DemoError after a timeout, or when `make up` is stopped.

    The event `leaving` is set when `make up` is stopped.
    """

    run: Played
    system: System
    keeper: Keeper
    ledgers: Ledgers
    failpoints: FailpointFolder
    leaving: threading.Event

    def note(self, what: str, arrow: Arrow | None = None) -> None:
        """Records a step. A step with an arrow is drawn in the sequence diagram."""
        self.run.note(what, arrow)

    def arm(self, failpoint: str) -> None:
        """Arms a failpoint for this run's customer."""
        self.failpoints.arm(failpoint, self.run.customer)
        self.note(f"failpoint {failpoint} is armed for {self.run.customer}")

    def disarm(self) -> None:
        """Disarms all failpoints of this run's customer."""
        self.failpoints.disarm_all(self.run.customer)

    def order(self, *, article: str = "book", price_cents: int = 2_599, payment: str = "now") -> int | None:
        """Sends one request for an order. Returns the HTTP status, or None if there was no response."""
        items = [{"name": article, "quantity": 1, "price_cents": price_cents}]
        body = {"customer": self.run.customer, "items": items, "payment": payment}
        if payment == "later":
            self.note(f"POST /orders: one {article} for {self.run.customer}, to be paid later")
        else:
            self.note(f"POST /orders: one {article} for {self.run.customer}")
        try:
            response = ask("POST", f"{self.system.order_url}/orders", body, timeout_s=_REQUEST_S)
        except httpx.TransportError as error:
            self.note(f"no answer: {error}")
            self._find_transaction()
            return None
        self.note(f"the order service answers {response.status_code}: {_in_words(response)}")
        self._find_transaction()
        return response.status_code

    def pay(self) -> None:
        """Pays for the run's order."""
        found = self.ledgers.order_of(self.run.customer)
        if found is None:
            raise DemoError("the customer has no order to pay for")
        self._ask("POST", f"{self.system.order_url}/orders/{found[0]}/payment", {})

    def set_stock(self, available: int) -> None:
        """Sets the stock of the run's article. The article has the same name as the run's customer."""
        self._ask("PUT", f"{self.system.inventory_url}/stock/{self.run.customer}", {"available": available})

    def order_state(self) -> str | None:
        """Returns the state of the run's order, or None if the run has no order."""
        found = self.ledgers.order_of(self.run.customer)
        return found[1] if found is not None else None

    def entries(self) -> int:
        """Returns the number of the customer's credits and reversals."""
        return self.ledgers.credits_of(self.run.customer)

    def check_backs(self) -> int:
        """Returns the number of check-backs of the run's transaction."""
        return max((info.checks or 0 for info in self._infos()), default=0)

    def kill(self, process: Process) -> None:
        """Kills the process with SIGKILL. The keeper restarts it."""
        self.note(f"SIGKILL to the {process.name} ({process.pid}); it is started again", _at(process.name, "killed by kill -9"))
        self.keeper.kill(process)

    @contextmanager
    def check_backs_limited(self, max_checks: int) -> Iterator[None]:
        """Limits the number of check-backs during the block. Restarts the broker before and after the block.

        First waits until no other transaction is pending, because the limit applies to all transactions. Raises DemoError.
        """
        self.wait_until(
            lambda: asyncio.run(pending_transactions(self.system.namesrv_addr)) == 0,
            "no other transaction is pending, which the broker would give up too",
            timeout_s=_OTHERS_S,
        )
        self._start_broker_again(
            f"the broker is started again with transactionCheckMax={max_checks}: it gives up after {max_checks} check-backs",
            f"asks {max_checks} times at most",
            {"transactionCheckMax": str(max_checks)},
        )
        try:
            yield
        finally:
            self.system.configure_broker({})
        self._start_broker_again("the broker is started again with its own settings", "asks as usual again", {})

    def _start_broker_again(self, note: str, label: str, settings: Mapping[str, str]) -> None:
        self.system.configure_broker(settings)
        self.keeper.kill(self.system.broker)
        self.note(note, _at(BROKER, label))
        self.wait_until(lambda: self.is_ready(self.system.broker), "the broker runs again")
        self.wait_until(lambda: self.system.order_service.is_ready, "the order service is connected to it again")

    def send_unreadable(self) -> None:
        """Sends an invalid message to the topic of the orders.

        The message is sent and committed in a transaction of another program.
        """
        body = json.dumps({"order_id": self.run.customer, "customer": self.run.customer, "total": "25.99"}).encode()
        message = Message.of(ORDERS_TOPIC.decode(), body, tags="created", keys=[self.run.customer])
        self.note(f"another program sends a message without total_cents to the topic orders, with the key {self.run.customer}")
        asyncio.run(send_committed(self.system.namesrv_addr, message))
        self._find_transaction()

    def has_dead_letter(self, group: str) -> bool:
        """Returns True if the run's message is a dead letter of the consumer group."""
        return asyncio.run(is_dead_letter(self.system.namesrv_addr, self.run.transaction_id or "", group))

    def is_given_up(self) -> bool:
        """Returns True if the broker has discarded the run's message."""
        return any(info.state == "discarded" for info in self._infos())

    @contextmanager
    def kept_down(self, process: Process) -> Iterator[None]:
        """Kills the process with SIGKILL, and does not restart it until the end of the block."""
        self.note(f"SIGKILL to the {process.name} ({process.pid}); it stays down for now", _at(process.name, "killed by kill -9"))
        with self.keeper.kept_down(process):
            yield
        self.note(f"the {process.name} is started again", _at(process.name, "started again"))

    def empty_redis(self, *, is_fault: bool = False) -> None:
        """Deletes all keys in Redis with FLUSHALL. With `is_fault` the step is recorded as the scenario's fault."""
        with closing(Redis(port=self.system.redis_port)) as redis:
            redis.flushall()
        if is_fault:
            self.note("FLUSHALL: Redis has lost the task", _at("Redis", "FLUSHALL"))

    def is_in_inbox(self) -> bool:
        """Returns True if the run's message waits in the inbox of the credit database."""
        return bool(self.ledgers.inbox_events(self.run.transaction_id or ""))

    def keys_in_redis(self) -> int:
        """Returns the number of keys in Redis. The queue of waiting tasks counts as one key."""
        with closing(Redis(port=self.system.redis_port)) as redis:
            return int(redis.dbsize())

    @contextmanager
    def credit_database_away(self) -> Iterator[None]:
        """Holds the lock of the credit database during the block, so that no other process can write to the database."""
        path = self.system.credit_database_url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path, timeout=10, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            self.note("the credit database refuses writes: another connection holds its lock", _at(CREDIT_DATABASE, "locked"))
            try:
                yield
            finally:
                connection.execute("ROLLBACK")
                self.note("the credit database accepts writes again", _at(CREDIT_DATABASE, "unlocked"))

    def deaths(self, process: Process) -> int:
        """Returns the number of times that the process has exited."""
        return len(self.keeper.deaths_ms[process.name])

    def is_ready(self, process: Process) -> bool:
        """Returns True if the process is ready."""
        return self.keeper.is_ready(process)

    def wait_until(
        self, is_so: Callable[[], bool], what: str, arrow: Arrow | None = None, *, timeout_s: float = PATIENCE_S
    ) -> None:
        """Waits until `is_so` returns True, and records `what` as a step. Raises DemoError after the timeout."""
        deadline = time.monotonic() + timeout_s
        while not is_so():
            if time.monotonic() > deadline:
                raise DemoError(f"timed out after {timeout_s:g} s, waiting for: {what}")
            self.pause(_LOOK_EVERY_S)
        self.note(what, arrow)

    def wait_for_credit(self) -> None:
        """Waits until the order is credited."""
        self.wait_until(lambda: self.ledgers.credits_of(self.run.customer) > 0, "the credit is there")

    def pause(self, seconds: float) -> None:
        """Waits for `seconds`. Raises Interrupted if `make up` is stopped during the wait."""
        if self.leaving.wait(seconds):
            raise Interrupted("`make up` was stopped")

    def is_decided(self) -> bool:
        """Returns True if the run's transaction is decided by COMMIT or ROLLBACK."""
        trace = self._trace()
        return trace is not None and trace.op is not None

    def are_all_decided(self) -> bool:
        """Returns True if each half message of the run's customer is decided."""
        return all(trace.op is not None for trace in self._traces_of_customer())

    def is_acknowledged(self) -> bool:
        """Returns True if the credit service's offset at the broker is greater than the offset of the run's message."""
        for broker_name, store in zip(self.system.broker_names, self.system.broker_stores, strict=True):
            for trace in read_traces(store):
                if trace.transaction_id == self.run.transaction_id and trace.committed:
                    message = trace.committed[0]
                    reached = asyncio.run(consumer_offset(self.system.namesrv_addr, broker_name, message.queue_id))
                    return reached > message.queue_offset
        return False

    def _ask(self, method: str, url: str, body: Mapping[str, object]) -> None:
        try:
            response = ask(method, url, body, timeout_s=_REQUEST_S)
        except httpx.TransportError as error:
            raise DemoError(f"no response to {method} {url}: {error}") from None
        self.note(f"{method} {httpx.URL(url).path} is answered {response.status_code}")
        if response.is_error:
            raise DemoError(f"{method} {url} was refused: {_in_words(response)}")

    def _infos(self) -> list[TransactionInfo]:
        """Returns the brokers' information about the run's transaction; empty if it is unknown."""
        return asyncio.run(infos_of(self.system.namesrv_addr, self.run.transaction_id or ""))

    def _trace(self) -> Trace | None:
        """Returns the run's transaction from the commit log."""
        traces = read_traces_of(self.system.broker_stores)
        return next((trace for trace in traces if trace.transaction_id == self.run.transaction_id), None)

    def _find_transaction(self) -> None:
        """Sets the run's transaction to that of the customer's newest half message."""
        if found := self._traces_of_customer():
            self.run.transaction_id = found[-1].transaction_id
            self.run.key = found[-1].half.get_property(properties.KEYS)

    def _traces_of_customer(self) -> list[Trace]:
        customer = self.run.customer.encode()
        return [trace for trace in read_traces_of(self.system.broker_stores) if customer in trace.half.body]


async def infos_of(namesrv_addr: str, transaction_id: str) -> list[TransactionInfo]:
    """Returns the brokers' information about a transaction; empty if it is unknown. Raises DemoError if no broker responds."""
    header = ShowTransactionRequestHeader(transaction_id=transaction_id)
    async with asking(namesrv_addr) as session:
        answers = await session.ask_each(lambda broker: broker.show(header))
    return [info for _, found in answers for info in found.transactions]


async def pending_transactions(namesrv_addr: str) -> int:
    """Returns the number of pending transactions. Raises DemoError if no broker responds."""
    async with asking(namesrv_addr) as session:
        answers = await session.ask_each(lambda broker: broker.list_pending(ListPendingTransactionsRequestHeader(max_count=1)))
    return sum(found.total for _, found in answers)


async def is_dead_letter(namesrv_addr: str, message_id: str, group: str) -> bool:
    """Returns True if the message is a dead letter of the consumer group. Raises DemoError if no broker responds."""
    async with asking(namesrv_addr) as session:
        try:
            return bool(await find_dead_letters(session, message_id, group))
        except Refused:
            return False


async def send_committed(namesrv_addr: str, message: Message) -> None:
    """Sends and commits the message in a transaction of the producer group CARELESS. Raises DemoError if this fails."""

    @local_transaction
    def commit(message: Message, arg: object) -> LocalTransactionState:
        return LocalTransactionState.COMMIT_MESSAGE

    @commit.answers_check_backs
    def commit_again(message: MessageExt) -> LocalTransactionState:
        return LocalTransactionState.COMMIT_MESSAGE

    try:
        async with TransactionProducer(CARELESS, commit, namesrv_addr=namesrv_addr) as producer:
            await producer.send_message_in_transaction(message)
    except ClientError as error:
        raise DemoError(f"the message could not be sent: {error}") from None


async def consumer_offset(namesrv_addr: str, broker_name: str, queue_id: int) -> int:
    """Returns the credit service's offset in a queue of the topic orders, or -1. Raises DemoError if no broker responds."""
    async with asking(namesrv_addr) as session:
        answers = await session.ask_each(lambda broker: consume_stats(broker, _CONSUMER_GROUP, ORDERS_TOPIC.decode()))
    for _, stats in answers:
        for queue, offsets in stats.offset_table.items():
            if (queue.broker_name, queue.queue_id) == (broker_name, queue_id):
                return offsets.consumer_offset
    return -1


@asynccontextmanager
async def asking(namesrv_addr: str) -> AsyncGenerator[Session]:
    """Yields a session with the brokers. Raises DemoError instead of an AdminError."""
    try:
        async with opened_session(Target(namesrv_addr)) as session:
            yield session
    except AdminError as error:
        raise DemoError(str(error)) from None


def _at(name: str, label: str) -> Arrow:
    """Returns an arrow for an event of a process or a database. The arrow is drawn as a loop at the lifeline of `name`."""
    return Arrow(name, name, label)


def _in_words(response: httpx.Response) -> str:
    try:
        body = response.json()
    except ValueError:
        return response.text[:100]
    if "order" in body:
        return f"order {body['order']['order_id']}, {body['transaction']['state']}"
    return str(body.get("detail") or body.get("title") or "")[:200]
