"""Runs a name server and a broker in the test's event loop, with a simulated clock, network and disk."""

import asyncio
import contextvars
import math
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from rocketmq_broker.app import Broker
from rocketmq_broker.app.pace import Pace
from rocketmq_broker.client import MessageListener, Producer, PushConsumer, TransactionListeners, TransactionProducer
from rocketmq_broker.config import load_settings
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.remoting.connections.connection import RequestHandler
from rocketmq_broker.remoting.network import on_network
from rocketmq_broker.store.files import FileSystem, OsFileSystem
from rocketmq_broker.store.memory_files import MemoryFiles
from rocketmq_broker.testing.apache import LikeApache, release_named
from rocketmq_broker.testing.disk import Disk, InlineFlush
from rocketmq_broker.testing.interceptor import Faults, Interceptor
from rocketmq_broker.testing.journal import EventKind, Journal
from rocketmq_broker.testing.loops.idle_skip import MIN_LEAP_S, QUIET_S, IdleSkip
from rocketmq_broker.testing.memory_network import MemoryNetwork
from rocketmq_broker.testing.queries import IS_ASSERTION, MOMENT_S, Queries
from rocketmq_broker.testing.transactions import Inspection
from rocketmq_broker.testing.virtual_time import VirtualTime, without_threads
from rocketmq_broker.world import World, current_world, in_world

Client = TypeVar("Client", bound="Producer | PushConsumer")
T = TypeVar("T")

__tracebackhide__ = IS_ASSERTION
REPEATABLE_START_MS: Final = 1_767_225_600_000
"""The initial time of a test with a seed: 2026-01-01T00:00:00Z in milliseconds since the epoch."""
LOOK_EVERY_S: Final = 0.1
PACE: Final = Pace(
    upkeep_s=30.0, checkpoint_s=150.0, silent_clients_s=30.0, silent_brokers_s=30.0, idle_notes_s=30.0, wall_clock_s=math.inf,
    max_sleep_s=math.inf,
)  # fmt: skip
"""The broker's maintenance intervals.

They are long, so that few timers fire. The wall clock is not checked for steps, because the wall clock and the steady clock are
the same simulated clock.
"""
HEARTBEAT_S: Final = 30.0
"""The interval of clients' heartbeats, in seconds."""
OUTSIDE_S: Final = 0.02
"""The real time in seconds that outside clients get for every 30 s of simulated time."""
_LOCAL_HOST: Final = "127.0.0.1"
_MEMORY: Final = "/memory"
_PROCESS_ID: Final = 4711
_NAME_SERVER_PORT: Final = 9876
_BROKER_PORT: Final = 10911
_SETTINGS: Final = {
    "brokerIP1": _LOCAL_HOST,
    "bindAddress": _LOCAL_HOST,
    "tls.server.mode": "disabled",
    "mapedFileSizeCommitLog": str(64 << 20),
    "mapedFileSizeConsumeQueue": str(20 * 10_000),
    "maxHashSlotNum": "1000",
    "maxIndexNum": "20000",
}


class RocketMQ(Queries):
    """A broker and a name server that run between `start` and `stop`, or in `async with RocketMQ() as rocketmq:`.

    Clients created on its event loop after `start` use its clock and its network.
    """

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        *,
        store: Path | None = None,
        seed: int | None = None,
        start_ms: int | None = None,
        time: VirtualTime | None = None,
    ) -> None:
        """`settings` are the settings of broker.conf. The store is in memory unless `store` is a directory. Raises ConfigError.

        With a `seed` a test repeats byte for byte: time begins at 2026-01-01, and listeners run on the event loop. The ports are
        RocketMQ's defaults but not real ones, so only clients on the same event loop can connect. `start_ms` is the initial time
        in milliseconds since the epoch. The default is the current time, or 2026-01-01 with a seed.
        """
        is_repeatable = seed is not None
        if start_ms is None:
            start_ms = REPEATABLE_START_MS if is_repeatable else current_world().wall_ms()
        self.time = time or VirtualTime(start_ms)
        self.faults = Faults()
        self.journal = Journal(lambda: self.time.elapsed_s)
        self._owns_time = time is None
        self._files: FileSystem = MemoryFiles() if store is None else OsFileSystem()
        self._disk = Disk(self._files)
        self._properties = {
            **_SETTINGS,
            "storePathRootDir": str(store or _MEMORY),
            "listenPort": str(_BROKER_PORT if is_repeatable else 0),
            "namesrvListenPort": str(_NAME_SERVER_PORT if is_repeatable else 0),
            **{name: _text(value) for name, value in (settings or {}).items()},
        }
        self._network = MemoryNetwork(is_open=not is_repeatable, tap=lambda transport: self._active_interceptor.tap(transport))
        self.time.own_sockets = lambda: self._network.listening_sockets
        self.time.real_wait_s = lambda: self._interceptor.real_wait_s() if self._interceptor is not None else 0
        self._world = _world(self.time, seed)
        self._entered = ExitStack()
        self._context: contextvars.Context | None = None
        self._broker: Broker | None = None
        self._interceptor: Interceptor | None = None
        self._clients: list[Producer | PushConsumer] = []

    # addresses

    @property
    def namesrv_addr(self) -> str:
        """The value for clients' NAMESRV_ADDR."""
        return ";".join(self._running.name_servers)

    @property
    def broker_addr(self) -> str:
        """The broker's address."""
        return self._running.identity.address

    @property
    def grpc_endpoint(self) -> str | None:
        """The address for RocketMQ 5 clients. None unless the settings have a `grpcServerPort`."""
        return self._running.grpc_endpoint

    @property
    def is_running(self) -> bool:
        """Whether the broker is running. False before `start`, and between `crash` and `restart`."""
        return self._broker is not None

    # start and stop

    async def start(self) -> None:
        """Starts the broker. The running event loop uses the simulated clock until `stop`. Raises StartError, TypeError."""
        if self._owns_time:
            self._entered.callback(self.time.adopt(asyncio.get_running_loop()))
            inside = self.inside()
            inside.__enter__()
            self._entered.callback(_left, inside)
        try:
            with self.inside(), without_threads():
                self._context = contextvars.copy_context()
            await self._in_its_context(self._start_broker())
        except BaseException:
            self._entered.close()
            raise
        self.journal.note(EventKind.BROKER, f"the broker starts at {self.broker_addr}")

    async def stop(self) -> None:
        """Shuts down the clients that were started with this object, stops the broker, and restores the event loop's clock."""
        try:
            for client in reversed(self._clients):
                await client.shutdown()
            self._clients.clear()
            if self._broker is not None:
                await self._in_its_context(self._broker.stop())
                self._broker = None
        finally:
            self._network.release_ports()
            self._entered.close()

    async def __aenter__(self) -> Self:
        """Starts the broker. Returns this object."""
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stops the broker."""
        await self.stop()

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Makes objects created within the block use the simulated clock and network."""
        with in_world(self._world), on_network(self._network):
            yield

    # clients

    async def producer(self, /, group: str, **settings: Any) -> Producer:
        """Starts a producer that runs until the end of the test. `settings` are arguments of Producer."""
        return await self._started(Producer(group, namesrv_addr=self.namesrv_addr, **settings))

    async def transaction_producer(self, /, group: str, listener: TransactionListeners, **settings: Any) -> TransactionProducer:
        """Starts a producer of transactional messages that runs until the end of the test."""
        return await self._started(TransactionProducer(group, listener, namesrv_addr=self.namesrv_addr, **settings))

    async def consumer(
        self, /, group: str, topic: str, listener: MessageListener, *, tags: str = "*", orderly: bool = False, **settings: Any
    ) -> PushConsumer:
        """Starts a consumer that runs until the end of the test."""
        consumer = PushConsumer(group, namesrv_addr=self.namesrv_addr, **settings)
        consumer.subscribe(topic, tags)
        consumer.register_message_listener(listener, orderly=orderly)
        return await self._started(consumer)

    # time

    async def advance(self, *, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0) -> None:
        """Advances the clock. All timers due in that time fire, in order. On return all work is done."""
        left_s = seconds + 60 * minutes + 3600 * hours + 86_400 * days
        while left_s > HEARTBEAT_S and self._interceptor is not None and self._network.clients_outside:
            self._interceptor.repeat_heartbeats()
            await self.time.advance(HEARTBEAT_S)
            left_s -= HEARTBEAT_S
            await self._serve_outside_clients()
        while left_s >= 2 * QUIET_S + MIN_LEAP_S:
            before = self._activity()
            await self.time.advance(QUIET_S)
            left_s -= QUIET_S
            if before == self._activity():
                left_s -= self._skip(left_s - QUIET_S)
        await self.time.advance(left_s)
        await self._serve_outside_clients()

    async def settle(self) -> None:
        """Advances the clock by ten milliseconds, and returns when all work is done."""
        await self.time.advance(MOMENT_S)

    async def wait_until(
        self, condition: Callable[[], T | Awaitable[T]], *, seconds: float = 60, minutes: float = 0, what: str = ""
    ) -> T:
        """Advances the clock until the condition holds, and returns the condition's value.

        Raises AssertionError if the condition does not hold within `minutes` plus `seconds` of simulated time. `what` names the
        condition in the error.
        """
        self.time.wanted()
        end_s = self.time.elapsed_s + seconds + 60 * minutes
        while True:
            found = condition()
            if isinstance(found, Awaitable):
                found = await found
            if found:
                return found
            if self.time.elapsed_s >= end_s:
                raise AssertionError(
                    f"timed out after {seconds + 60 * minutes:g} s, waiting for {what or 'the condition'}\n{self.story()}"
                )
            await asyncio.sleep(LOOK_EVERY_S)

    # faults

    def lose_next_decision(self, count: int = 1) -> None:
        """Drops the next `count` decisions (COMMIT or ROLLBACK) before they reach the broker.

        A decision may also be the response to a check-back.
        """
        self.faults.decisions_to_lose += count

    def lose_next_answer(self, count: int = 1, *, key: str | None = None) -> None:
        """Drops the broker's responses to the next `count` messages or half messages. The messages are still stored.

        With a `key`, drops only the response to the next message with that key.
        """
        if key is None:
            self.faults.answers_to_lose += count
        else:
            self.faults.keys_of_answers_to_lose.add(key)

    @contextmanager
    def hold_check_backs(self) -> Iterator[None]:
        """Holds check-backs until the end of the `with` block, then sends them."""
        self.faults.are_checks_held = True
        try:
            yield
        finally:
            self.release_check_backs()

    def release_check_backs(self) -> None:
        """Sends the held check-backs, and stops holding them."""
        self.faults.are_checks_held = False
        if self._interceptor is not None:
            self._interceptor.release_checks()

    def cut_connections(self) -> None:
        """Aborts all connections to name server and broker. Clients connect again."""
        count = self._network.cut()
        self.journal.note(EventKind.FAULT, f"{count} connections are cut (requested by the test)")

    def refuse_sends(self, code: ResponseCode = ResponseCode.SYSTEM_BUSY, *, times: int | None = None) -> None:
        """Refuses messages and half messages with the response code `code`.

        Refuses the next `times` messages, or all messages until `accept_sends` if `times` is None. FLUSH_DISK_TIMEOUT,
        FLUSH_SLAVE_TIMEOUT and SLAVE_NOT_AVAILABLE mean that a message is stored. With these codes, the messages are
        therefore stored, and only their responses have the code.
        """
        self.faults.refuse_sends_with, self.faults.refusals_left = code, times

    def accept_sends(self) -> None:
        """Stops refusing messages."""
        self.faults.refuse_sends_with = None

    @property
    def is_disk_full(self) -> bool:
        """Whether the broker's disk is full."""
        return self._disk.is_full

    def fill_disk(self) -> None:
        """Fills the broker's disk until `free_disk` is called."""
        self._disk.is_full = True
        self.journal.note(EventKind.FAULT, "the broker's disk is full (requested by the test)")

    def free_disk(self) -> None:
        """Frees the broker's disk. The broker accepts messages again within ten seconds."""
        self._disk.is_full = False
        self.journal.note(EventKind.FAULT, "the broker's disk is no longer full")

    def as_apache(self, release: int = 4) -> None:
        """Imitates the weaknesses of Apache's broker 4.9.7 in transactions, or those of 5.3.3 with `release=5`.

        Call it before half messages are sent. Raises ValueError for another release. docs/testing.md has the full list of
        differences. The most important ones are:

        - A decision after a check-back ends only the first copy of the half message. The second copy is checked at the next
          interval, and its COMMIT delivers the message again, with the same message id.
        - A COMMIT delivers the message even after another COMMIT, a ROLLBACK or a discard.
        - Checks are counted while no producer of the group is online, and while the message is immune to checks.
          Transactions may therefore be discarded without a check-back.
        - Check-backs are sent to the members of a producer group in turn, without preference for the half message's sender.
        - Born hosts have no port.
        """
        wanted = release_named(release)
        if self.faults.like_apache is not None:
            self.faults.like_apache.stop()
        settings = load_settings(None, self._properties).settings
        like_apache = LikeApache(
            self._active_interceptor,
            self.journal,
            now_s=lambda: self.time.elapsed_s,
            release=wanted,
            check_interval_s=settings.transaction_check_interval / 1000,
            check_max=settings.transaction_check_max,
        )
        self._active_interceptor.imitate_apache(like_apache)
        self._entered.callback(like_apache.stop)

    async def crash(self, *, power: bool = False) -> None:
        """Ends the broker and its name server like kill -9: connections are aborted, and unwritten data is lost.

        With `power`, unsynced data is lost as well, as in a power failure of the machine. This requires a store in memory.
        """
        broker = self._running
        if power and not isinstance(self._files, MemoryFiles):
            raise ValueError("crash(power=True) requires a store in memory: unsynced data of a directory cannot be discarded")
        self._disk.is_dead = True
        if isinstance(self._files, MemoryFiles):
            self._files = self._files.powered_off() if power else self._files.killed()
        self._keep_ports_of(broker)
        self._broker = None
        self._network.cut()
        self._active_interceptor.forget_checks()
        if self.faults.like_apache is not None:
            self.faults.like_apache.broker_stopped(is_killed=True)
        await self._in_its_context(broker.stop())
        self._disk = Disk(self._files)
        self.journal.note(EventKind.FAULT, f"the broker {'loses power' if power else 'is killed'} (requested by the test)")

    async def restart(self) -> None:
        """Starts the broker again on the same ports and disk. If the broker is running, stops it first."""
        if self._broker is not None:
            self._keep_ports_of(self._broker)
            if self.faults.like_apache is not None:
                self.faults.like_apache.broker_stopped(is_killed=False)
            await self._in_its_context(self._broker.stop())
            self._broker = None
        await self._in_its_context(self._start_broker())
        self.journal.note(EventKind.BROKER, "the broker starts again")

    def commit_log(self, *, is_synced: bool = False) -> bytes:
        """Returns the bytes of the whole commit log of a store in memory. Raises ValueError if the store is a directory.

        With `is_synced`, returns only the bytes that a power failure would leave.
        """
        files = self._memory_files("commit_log()")
        if is_synced:
            files = files.powered_off()
        segments = [path for path in files.paths if path.parent.name == "commitlog"]
        return b"".join(files.content(path) for path in segments)

    def stored_file(self, name: str) -> bytes | None:
        """Returns the content of a file of a store in memory, such as `config/consumerOffset.json`; None if there is none.

        Raises ValueError if the store is a directory.
        """
        files = self._memory_files("stored_file()")
        path = Path(_MEMORY) / name
        return files.content(path) if path in files.paths else None

    def inspection(self) -> Inspection:
        """Returns an object that reads the running broker's state, without a connection. Raises RuntimeError if none runs."""
        return Inspection(self._active_interceptor.broker, self._running.identity.name)

    # internals

    @property
    def _running(self) -> Broker:
        if self._broker is None:
            raise RuntimeError("the broker is not running: call start(), or restart() after crash()")
        return self._broker

    def _memory_files(self, call: str) -> MemoryFiles:
        if not isinstance(self._files, MemoryFiles):
            raise ValueError(f"{call} requires a store in memory: read the files in the store's directory instead")
        return self._files

    @property
    def _active_interceptor(self) -> Interceptor:
        assert self._interceptor is not None
        return self._interceptor

    def _keep_ports_of(self, broker: Broker) -> None:
        """Makes the next broker use the same ports, so that clients find it."""
        name_server = broker.name_servers[0]
        self._properties |= {"listenPort": str(broker.identity.port), "namesrvListenPort": name_server.rpartition(":")[2]}
        if broker.grpc_endpoint is not None:
            self._properties["grpcServerPort"] = broker.grpc_endpoint.rpartition(":")[2]

    async def _serve_outside_clients(self) -> None:
        """Waits for `OUTSIDE_S` seconds of real time, so that outside clients can send and receive.

        The caller has already waited for their responses to check-backs.
        """
        if self._network.clients_outside:
            await asyncio.sleep(OUTSIDE_S)

    def _activity(self) -> object:
        return self.journal.events[-1:], self._broker

    def _skip(self, max_s: float) -> float:
        """Skips up to `max_s` seconds in which only maintenance timers would fire. Returns the skipped seconds."""
        broker = self._broker
        if broker is None or broker.grpc_endpoint is not None or self._network.clients_outside or self._disk.is_full:
            return 0
        idle_skip = IdleSkip(self.time, asyncio.get_running_loop())
        ends_s = [max_s]
        if idle_skip.next_s is not None:
            ends_s.append(idle_skip.next_s - QUIET_S)
        expiry_ms = broker.next_expiry_ms()
        if expiry_ms is not None:
            ends_s.append(expiry_ms / 1000 - self.time.wall_ns() / 1e9 - QUIET_S)
        seconds = min(ends_s) // MIN_LEAP_S * MIN_LEAP_S
        if seconds <= 0:
            return 0
        idle_skip.skip(seconds)
        return seconds

    async def _in_its_context(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.get_running_loop().create_task(work, context=self._context)

    async def _start_broker(self) -> None:
        disk = self._disk
        settings = load_settings(None, self._properties).settings
        broker = Broker(
            settings,
            pace=PACE,
            files=disk,
            new_flushing=lambda on_answer, on_unavailable, make_room: InlineFlush(disk, on_answer),
            requests_to=self._intercept,
        )
        await broker.start()
        self._broker = broker

    def _intercept(self, broker: RequestHandler) -> Interceptor:
        self._interceptor = Interceptor(broker, self.faults, self.journal)
        if self.faults.like_apache is not None:
            self.faults.like_apache.broker_restarted(self._interceptor)
        return self._interceptor

    async def _started(self, client: Client) -> Client:
        with self.inside():
            await client.start()
        self._clients.append(client)
        return client


def _world(time: VirtualTime, seed: int | None) -> World:
    chance = random.Random(0 if seed is None else seed)
    return World(
        wall_ns=time.wall_ns,
        steady_ns=time.steady_ns,
        random=chance,
        process_id=lambda: _PROCESS_ID,
        nonce=chance.randbytes,
        local_address=lambda: _LOCAL_HOST,
        watch=time,
        run_function=None if seed is None else _run_here,
    )


async def _run_here(function: Callable[[], T]) -> T:
    return function()


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _left(inside: AbstractContextManager[None]) -> None:
    # A fixture that ends in another task than it began in cannot reset the context variable.
    with suppress(ValueError):
        inside.__exit__(None, None, None)
