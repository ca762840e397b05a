"""The files that one message or one order passes through: `python -m lab.benchmarks.way message`, or `order`.

Twenty go first, so that routes, connections and caches are there. Then five are followed by Python's profile hook, client and
broker in one process: what ran for each of them is the way, and what ran for some (heartbeats, offsets that are kept) is not.
The consumer's pull waits at the broker when a message comes, as in a quiet system.

A file hands on if a function of it that ran calls a function of another file of ours. It chooses where the way goes if such a
function has a branch as well (if, match, a conditional expression, an except clause). A reader has to understand the files that
choose; the others are data, leaves or straight lines.
"""

from __future__ import annotations

import ast
import asyncio
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Annotated, Final, NamedTuple

import typer

from demo.ports import free_ports
from demo.processes import PROJECT_ROOT, Processes, prints
from order_service.adapters.order_broker import OrderBroker
from order_service.adapters.order_store import SqlOrderStore
from order_service.adapters.tables import MIGRATIONS
from order_service.entrypoints.http import create_app
from order_service.service_layer.transaction_listener import transaction_listeners
from rocketmq_broker.client import ConsumeContext, ConsumeStatus, EventLoopThread, LocalTransactionState, Message, MessageExt
from rocketmq_broker.stop_signals import until_interrupted
from rocketmq_broker.testing import RocketMQ
from rocketmq_broker.world import current_world
from service_runtime.database.opening import open_database

WARM_UP: Final = 20
FOLLOWED: Final = 5
OF_A_MESSAGE: Final = ("broker/rocketmq_broker/",)
OF_AN_ORDER: Final = ("order_service/", "service_runtime/", "order_messages/")
NOT_ON_THE_WAY: Final = ("broker/rocketmq_broker/testing/", "broker/rocketmq_broker/store/memory_file")
"""What stands in for network, time and disk while a message is followed."""
_BRANCHES: Final = (ast.If, ast.IfExp, ast.Match, ast.ExceptHandler)


class Function(NamedTuple):
    """A function of ours."""

    file: str
    name: str
    first_line: int
    """That of its first decorator, if it has one."""


@dataclass(slots=True)
class Way:
    """What ran for each of the messages or orders that were followed."""

    folders: tuple[str, ...]
    """Files under these count, as paths from the project's root."""
    ran: set[Function] = field(default_factory=set)
    hops: set[tuple[Function, str]] = field(default_factory=set)
    """Calls of a function into another file."""
    _seen_ran: set[Function] = field(default_factory=set)
    _seen_hops: set[tuple[Function, str]] = field(default_factory=set)
    _is_first: bool = True

    @property
    def files(self) -> set[str]:
        """The files of which a function ran."""
        return {function.file for function in self.ran}

    @property
    def handing_on(self) -> set[str]:
        """The files that call into another."""
        return {function.file for function, _ in self.hops}

    @property
    def choosing(self) -> set[str]:
        """The files of which a function with a branch calls into another."""
        return {function.file for function, _ in self.hops if function in branching_functions(function.file)}

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Follows the thread that enters, beside those that were told to follow (`threading.setprofile`) before they started."""
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
        """Notes a call: a profile function for `sys.setprofile`."""
        if event != "call" or (function := self._function(frame.f_code)) is None:
            return
        self._seen_ran.add(function)
        caller = frame.f_back
        while caller is not None and project_file(caller.f_code.co_filename) is None:  # through a library
            caller = caller.f_back
        if caller is not None and (calling := self._function(caller.f_code)) is not None and calling.file != function.file:
            self._seen_hops.add((calling, function.file))

    def _function(self, code: CodeType) -> Function | None:
        file = project_file(code.co_filename)
        if file is None or not file.startswith(self.folders) or file.startswith(NOT_ON_THE_WAY):
            return None
        return Function(file, code.co_name, code.co_firstlineno)


@cache
def project_file(filename: str) -> str | None:
    """Returns the path from the project's root, or None for a file outside it or in its environment."""
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


class Committing:
    """Commits each transaction."""

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        """Returns COMMIT_MESSAGE."""
        return LocalTransactionState.COMMIT_MESSAGE

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Returns COMMIT_MESSAGE."""
        return LocalTransactionState.COMMIT_MESSAGE


async def way_of_a_message() -> Way:
    """Returns the way of a half message, its COMMIT and its delivery."""
    way, arrived = Way(OF_A_MESSAGE), asyncio.Semaphore(0)

    def listener(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        arrived.release()
        return ConsumeStatus.CONSUME_SUCCESS

    async with RocketMQ(seed=1) as rocketmq:  # whose listeners run at the same point each time
        producer = await rocketmq.transaction_producer("way", Committing())
        await producer.create_topic("orders")
        await rocketmq.consumer("way-consumers", "orders", listener)

        async def one(number: int) -> None:
            await producer.send_message_in_transaction(Message.of("orders", b"order", keys=[f"order-{number}"]))
            await arrived.acquire()

        for number in range(WARM_UP):
            await one(number)
        for number in range(WARM_UP, WARM_UP + FOLLOWED):
            await rocketmq.advance(seconds=1)
            with way.followed():
                await one(number)
    return way


def way_of_an_order(home: Path) -> Way:
    """Returns the way of an order from its POST to the answer: the request, the local transaction, the row."""
    way = Way(OF_AN_ORDER)
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
        threading.setprofile(way.see)  # the loop's thread starts now, and is followed from here on
        broker = OrderBroker(listeners, namesrv_addr=f"127.0.0.1:{name_server}", send_timeout_ms=3000, loop=EventLoopThread())
        broker.start()
        try:
            with create_app(store, broker, world, readiness_counts_s=0).test_client() as client:
                for _ in range(WARM_UP):
                    placed(client.post("/orders", json=body).status_code)
                for _ in range(FOLLOWED):
                    with way.followed():
                        placed(client.post("/orders", json=body).status_code)
        finally:
            threading.setprofile(None)
            broker.stop()
            engine.dispose()
    return way


def placed(status: int) -> None:
    """Raises AssertionError unless the order was placed."""
    assert status == 201, status


def told(name: str, way: Way) -> str:
    """Returns the figures, and the files that choose."""
    figures = f"{len(way.files)} files run, {len(way.handing_on)} hand on, {len(way.choosing)} choose"
    return "\n".join([f"{name}: {figures}", *(f"  {file}" for file in sorted(way.choosing))])


def main(what: Annotated[str, typer.Argument(help="`message` or `order`.")] = "message") -> None:
    """Follows one message or one order, and prints the files on its way."""
    ways: dict[str, Callable[[Path], Way]] = {"message": lambda home: asyncio.run(way_of_a_message()), "order": way_of_an_order}
    if what not in ways:
        raise typer.BadParameter(f"{what!r} is neither 'message' nor 'order'")
    with tempfile.TemporaryDirectory() as home:
        print(told(what, ways[what](Path(home))))


if __name__ == "__main__":
    with until_interrupted():
        typer.run(main)
