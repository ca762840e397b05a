"""Finds the files that a message, an order or a credit passes through.

Twenty messages warm up routes, connections and caches. Python's profile hook records five more, with client and broker in one
process. Functions that ran for each of the five belong to the call path; functions that ran for some (heartbeats, commits of
offsets) do not. The consumer's pull waits at the broker when a message arrives, as in an idle system.

A file "hands on" if one of its functions on the call path calls a function in another file of the project. It "chooses" if such
a function also has a branch (if, match, a conditional expression, an except clause). Readers must understand the files that
choose.
"""

import ast
import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Final, NamedTuple

from credit_service.adapters import tables as credit_tables
from credit_service.adapters.drain_task import DRAIN_TASK, TaskSender, create_celery, register_drain_task
from credit_service.adapters.ledger import Ledger
from credit_service.adapters.workers import redis_client
from credit_service.service_layer.crediting import entry_of
from credit_service.settings import WorkerSettings
from credit_service.worker.process import drain_of
from demo.ports import free_ports
from demo.processes import PROJECT_ROOT, Processes, prints
from demo.system import redis_command
from order_messages.body import UnreadableBody
from order_messages.order_created import OrderCreated
from order_service.adapters.order_broker import OrderBroker
from order_service.adapters.order_store import SqlOrderStore
from order_service.adapters.tables import MIGRATIONS
from order_service.entrypoints.http import create_app
from order_service.service_layer.transaction_listener import transaction_listeners
from rocketmq_broker.client import ConsumeContext, ConsumeStatus, EventLoopThread, Message, MessageExt
from rocketmq_broker.message import MessageQueue
from rocketmq_broker.message.record import Record, to_message
from rocketmq_broker.testing import RocketMQ
from rocketmq_broker.world import current_world
from service_runtime.database.opening import open_database
from service_runtime.inbox.bell_thread import BellThread
from service_runtime.inbox.inbox_listener import InboxListener
from tests.unit.testing.listeners import Transactions

WARM_UP: Final = 20
FOLLOWED: Final = 5
OF_A_MESSAGE: Final = ("broker/rocketmq_broker/",)
OF_AN_ORDER: Final = ("order_service/", "service_runtime/", "order_messages/")
OF_A_CREDIT: Final = ("credit_service/", "service_runtime/", "order_messages/")
EXCLUDED: Final = ("broker/rocketmq_broker/testing/", "broker/rocketmq_broker/store/memory_file")
"""The prefixes of files that replace network, time and disk during the recording. These files are not part of the call path."""
_BRANCHES: Final = (ast.If, ast.IfExp, ast.Match, ast.ExceptHandler)


class Function(NamedTuple):
    """A function in the project's code."""

    file: str
    name: str
    first_line: int
    """The number of the function's first line, which is that of its first decorator if it has one."""


@dataclass(slots=True)
class CallPath:
    """The functions that ran for each of the recorded messages or orders."""

    folders: tuple[str, ...]
    """The folders whose files count, relative to the project's root."""
    ran: set[Function] = field(default_factory=set)
    hops: set[tuple[Function, str]] = field(default_factory=set)
    """The calls from a function into another file."""
    _seen_ran: set[Function] = field(default_factory=set)
    _seen_hops: set[tuple[Function, str]] = field(default_factory=set)
    _is_first: bool = True

    @property
    def files(self) -> set[str]:
        """The files that contain at least one function on the call path."""
        return {function.file for function in self.ran}

    @property
    def handing_on(self) -> set[str]:
        """The files that call into another file."""
        return {function.file for function, _ in self.hops}

    @property
    def choosing(self) -> set[str]:
        """The files with a branching function that calls into another file."""
        return {function.file for function, _ in self.hops if function in branching_functions(function.file)}

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Records the calls of the current thread during the block.

        The calls of another thread are recorded if `threading.setprofile` was called before the thread started.
        """
        self._seen_ran, self._seen_hops = set(), set()
        sys.setprofile(self.see)
        try:
            yield
        finally:
            sys.setprofile(None)
        self.ran = self._seen_ran if self._is_first else self.ran & self._seen_ran
        self.hops = self._seen_hops if self._is_first else self.hops & self._seen_hops
        self._is_first = False

    def see(self, frame: FrameType, event: str, arg: object) -> None:
        """Records a call. This method is the profile function for `sys.setprofile`."""
        if event != "call" or (function := self._function(frame.f_code)) is None:
            return
        self._seen_ran.add(function)
        caller = frame.f_back
        while caller is not None and project_file(caller.f_code.co_filename) is None:  # The call goes through a library.
            caller = caller.f_back
        if caller is not None and (calling := self._function(caller.f_code)) is not None and calling.file != function.file:
            self._seen_hops.add((calling, function.file))

    def _function(self, code: CodeType) -> Function | None:
        file = project_file(code.co_filename)
        if file is None or not file.startswith(self.folders) or file.startswith(EXCLUDED):
            return None
        return Function(file, code.co_name, code.co_firstlineno)


@cache
def project_file(filename: str) -> str | None:
    """Returns the path relative to the root, or None for a file outside the project or in its virtual environment."""
    path = Path(filename)
    if not path.is_relative_to(PROJECT_ROOT) or ".venv" in path.parts:
        return None
    return path.relative_to(PROJECT_ROOT).as_posix()


@cache
def branching_functions(file: str) -> frozenset[Function]:
    """Returns the functions in the file that have a branch."""
    found = set()
    for node in ast.walk(ast.parse((PROJECT_ROOT / file).read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(
            isinstance(part, _BRANCHES) for part in ast.walk(node)
        ):
            found.add(Function(file, node.name, min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])))
    return frozenset(found)


async def call_path_of_a_message() -> CallPath:
    """Returns the call path of a half message, its COMMIT and its delivery to a consumer."""
    path, arrived = CallPath(OF_A_MESSAGE), asyncio.Semaphore(0)

    def listener(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        arrived.release()
        return ConsumeStatus.CONSUME_SUCCESS

    async with RocketMQ(seed=1) as rocketmq:  # With a fixed seed, listeners run at the same point each time.
        producer = await rocketmq.transaction_producer("call-path", Transactions())
        await producer.create_topic("orders")
        await rocketmq.consumer("call-path-consumers", "orders", listener)

        async def one(number: int) -> None:
            await producer.send_message_in_transaction(Message.of("orders", b"order", keys=[f"order-{number}"]))
            await arrived.acquire()

        for number in range(WARM_UP):
            await one(number)
        for number in range(WARM_UP, WARM_UP + FOLLOWED):
            await rocketmq.advance(seconds=1)
            with path.followed():
                await one(number)
    return path


def call_path_of_an_order(home: Path) -> CallPath:
    """Returns the call path of an order, from its POST to the response.

    It includes the request, the local transaction and the stored row.
    """
    path = CallPath(OF_AN_ORDER)
    port, name_server = free_ports(2)
    engine = open_database(f"sqlite:///{home / 'orders.db'}", migrations=MIGRATIONS, start_timeout_s=10)
    world = current_world()
    store = SqlOrderStore(engine, world)
    listeners = transaction_listeners(store, order_limit_cents=100_000, now_ms=world.wall_ms)
    conf = home / "broker.conf"
    conf.write_text(f"listenPort={port}\nnamesrvListenPort={name_server}\nstorePathRootDir={home / 'store'}\n")
    body = {"customer": "ada", "items": [{"name": "tea", "quantity": 1, "price_cents": 250}]}
    with Processes(home) as processes:
        command = [sys.executable, "-m", "rocketmq_broker", "-c", str(conf)]
        processes.add("broker", command, is_ready=prints("boot success")).start()
        threading.setprofile(path.see)  # The event loop's thread starts now, so it is recorded.
        broker = OrderBroker(
            listeners,
            namesrv_addr=f"127.0.0.1:{name_server}",
            send_timeout_ms=3000,
            loop=EventLoopThread(),
            witness=store.history.witness,
        )
        broker.start()
        try:
            with create_app(store, broker, world, readiness_counts_s=0).test_client() as client:
                for _ in range(WARM_UP):
                    placed(client.post("/orders", json=body).status_code)
                for _ in range(FOLLOWED):
                    with path.followed():
                        placed(client.post("/orders", json=body).status_code)
        finally:
            threading.setprofile(None)
            broker.stop()
            engine.dispose()
    return path


def call_path_of_a_credit(home: Path) -> CallPath:
    """Returns the call path of a credit, from the message listener to the row in the ledger.

    It includes the inbox, the task that is sent to Redis, and the work of a task. A Redis runs in its own process.
    """
    path, world = CallPath(OF_A_CREDIT), current_world()
    (port,) = free_ports(1)
    redis_url = f"redis://127.0.0.1:{port}/0"
    engine = open_database(f"sqlite:///{home / 'credits.db'}", migrations=credit_tables.MIGRATIONS, start_timeout_s=10)
    ledger = Ledger(engine, world)
    app, redis = create_celery(redis_url), redis_client(redis_url, 2)
    drain = drain_of(WorkerSettings.model_validate({}), ledger)
    register_drain_task(app, drain, world.steady_s)
    tasks = TaskSender(app, redis, ledger.inbox)
    bell = BellThread("tasks for the workers", tasks.send_if_due)
    listener = InboxListener(read=entry_of, unreadable=UnreadableBody, store=ledger.store, ring=bell.ring)

    def credit(number: int) -> None:
        listener([_order_message(number)], ConsumeContext(MessageQueue("orders", "broker-a", 0)))
        tasks.send_if_due()
        app.tasks[DRAIN_TASK]()
        credited(ledger.last_written(), number + 1)

    with Processes(home) as processes:
        command = redis_command(port, home)
        processes.add("redis", command, is_ready=prints("Ready to accept connections")).start()
        try:
            for number in range(WARM_UP):
                credit(number)
            for number in range(WARM_UP, WARM_UP + FOLLOWED):
                with path.followed():
                    credit(number)
        finally:
            redis.close()
            app.close()
            engine.dispose()
    return path


def _order_message(number: int) -> MessageExt:
    body = OrderCreated(
        version=1, order_id=str(number), customer="ada", total_cents=250, currency="EUR", created_at_ms=1
    ).encode()
    properties = f"UNIQ_KEY\x01id-{number}\x02".encode()
    return to_message(Record(0, 0, 0, 0, number, number, 0, 0, bytes(8), 0, bytes(8), 0, 0, body, b"orders", properties))


def credited(last_written: int, entries: int) -> None:
    """Raises AssertionError unless the ledger has this number of entries."""
    assert last_written == entries, last_written


def placed(status: int) -> None:
    """Raises AssertionError unless `status` means that the order was placed."""
    assert status == 201, status


def summary(name: str, path: CallPath) -> str:
    """Returns the figures of the call path, and the list of its choosing files (see `CallPath.choosing`)."""
    figures = f"{len(path.files)} files run, {len(path.handing_on)} hand on, {len(path.choosing)} choose"
    return "\n".join([f"{name}: {figures}", *(f"  {file}" for file in sorted(path.choosing))])
