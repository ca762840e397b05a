"""RocketMQ for synchronous tests: it runs on a thread of its own, and time stands still between two calls of the test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from rocketmq_broker.client import MessageListener, Producer, PushConsumer, TransactionListeners
from rocketmq_broker.message import MessageExt
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.testing.asked import IS_ASSERTION, Asked
from rocketmq_broker.testing.rocketmq import LOOK_EVERY_S, REPEATABLE_START_MS, RocketMQ
from rocketmq_broker.testing.transactions import Transaction
from rocketmq_broker.testing.virtual_time import VirtualTime
from rocketmq_broker.world import current_world

T = TypeVar("T")

__tracebackhide__ = IS_ASSERTION
_ENDS_WITHIN_S: Final = 10.0


class SyncRocketMQ:
    """Runs from `start` to `stop`, or as `with SyncRocketMQ() as rocketmq:`. Any thread but its own may call it.

    While a call lasts, time passes as far as the call needs it; between calls none does. RocketMQ says what each call promises.
    """

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        *,
        store: Path | None = None,
        seed: int | None = None,
        start_ms: int | None = None,
    ) -> None:
        """See RocketMQ. Raises ConfigError."""
        if start_ms is None:
            start_ms = REPEATABLE_START_MS if seed is not None else current_world().wall_ms()
        self._calls = 0
        self._time = VirtualTime(start_ms, is_awaited=lambda: self._calls > 0)
        self._rocketmq = RocketMQ(settings, store=store, seed=seed, time=self._time)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._serve, name="rocketmq", daemon=True)
        self._is_ready = threading.Event()

    def start(self) -> None:
        """Serves when it returns. Raises StartError."""
        self._thread.start()
        self._is_ready.wait()
        try:
            self.run(self._rocketmq.start())
        except BaseException:
            self._end()
            raise

    def stop(self) -> None:
        """Shuts down the clients that it made, then the broker."""
        try:
            self.run(self._rocketmq.stop())
        finally:
            self._end()

    def __enter__(self) -> Self:
        """Started."""
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stopped."""
        self.stop()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on its event loop, in its world, and waits for the result."""
        if threading.current_thread() is self._thread or self._loop is None:
            work.close()
            raise RuntimeError(
                "this would wait for its own thread: await the coroutine instead" if self._loop else "it does not run: start it"
            )
        running = asyncio.run_coroutine_threadsafe(self._awaited(work), self._loop)
        if (error := running.exception()) is not None:
            raise error  # here, and not within concurrent.futures: a report then shows the line of the test alone
        return running.result()

    # where it is

    @property
    def namesrv_addr(self) -> str:
        """What clients are given as NAMESRV_ADDR; real ones too, on other threads and in other processes."""
        return self._rocketmq.namesrv_addr

    @property
    def broker_addr(self) -> str:
        """The broker's own address."""
        return self._rocketmq.broker_addr

    @property
    def is_running(self) -> bool:
        """Whether the broker serves."""
        return self._rocketmq.is_running

    @property
    def elapsed_s(self) -> float:
        """Seconds of the test's time since the start."""
        return self._time.elapsed_s

    # clients

    def producer(self, group: str, **settings: Any) -> SyncClient:
        """A producer that runs until the end of the test. Its methods are called without `await`."""
        return SyncClient(self, self.run(self._rocketmq.producer(group, **settings)))

    def transaction_producer(self, group: str, listener: TransactionListeners, **settings: Any) -> SyncClient:
        """A producer of transactional messages that runs until the end of the test."""
        return SyncClient(self, self.run(self._rocketmq.transaction_producer(group, listener, **settings)))

    def consumer(
        self, group: str, topic: str, listener: MessageListener, *, tags: str = "*", orderly: bool = False, **settings: Any
    ) -> SyncClient:
        """A consumer that runs until the end of the test."""
        return SyncClient(self, self.run(self._rocketmq.consumer(group, topic, listener, tags=tags, orderly=orderly, **settings)))

    # time

    def advance(self, *, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0) -> None:
        """Passes so much time at once."""
        self.run(self._rocketmq.advance(seconds=seconds, minutes=minutes, hours=hours, days=days))

    def settle(self) -> None:
        """Returns when nothing is left to do but to wait for time."""
        self.run(self._rocketmq.settle())

    def wait_until(self, condition: Callable[[], T], *, seconds: float = 60, minutes: float = 0, what: str = "") -> T:
        """Passes time until the condition holds. It is called on the thread of the test. Raises AssertionError."""
        wait_s = seconds + 60 * minutes
        end_s = self.elapsed_s + wait_s
        while not (found := condition()):
            if self.elapsed_s >= end_s:
                raise AssertionError(f"{what or 'what was waited for'} did not come in {wait_s:g} s\n{self.story()}")
            self.advance(seconds=LOOK_EVERY_S)
        return found

    # faults

    def lose_next_decision(self, count: int = 1) -> None:
        """The next COMMIT or ROLLBACK is lost on its way to the broker."""
        self._call(lambda: self._rocketmq.lose_next_decision(count))

    def lose_next_answer(self, count: int = 1, *, key: str | None = None) -> None:
        """The broker stores the next message or half message, or the next one with that key, and its answer is lost."""
        self._call(lambda: self._rocketmq.lose_next_answer(count, key=key))

    @contextmanager
    def hold_check_backs(self) -> Iterator[None]:
        """Until the end of the `with` block check-backs do not reach their producers; then those that were held do."""
        self._rocketmq.faults.are_checks_held = True
        try:
            yield
        finally:
            self.release_check_backs()

    def release_check_backs(self) -> None:
        """Check-backs reach their producers, also those that were held."""
        self._call(self._rocketmq.release_check_backs)

    def cut_connections(self) -> None:
        """All connections of name server and broker end at once; clients connect anew."""
        self._call(self._rocketmq.cut_connections)

    def refuse_sends(self, code: ResponseCode = ResponseCode.SYSTEM_BUSY, *, times: int | None = None) -> None:
        """The next `times` messages are refused with that code, or all until `accept_sends`."""
        self._call(lambda: self._rocketmq.refuse_sends(code, times=times))

    def accept_sends(self) -> None:
        """Messages are stored again."""
        self._call(self._rocketmq.accept_sends)

    def fill_disk(self) -> None:
        """The broker's disk is full, until `free_disk`."""
        self._call(self._rocketmq.fill_disk)

    def free_disk(self) -> None:
        """There is room on the disk again."""
        self._call(self._rocketmq.free_disk)

    def as_apache(self, release: int = 4) -> None:
        """From now on the broker behaves as Apache's 4.9.7 where that is worse, or with `release=5` as 5.3.3."""
        self._call(lambda: self._rocketmq.as_apache(release))

    def crash(self, *, power: bool = False) -> None:
        """The broker and its name server end as by kill -9, or with `power` as by a power failure."""
        self.run(self._rocketmq.crash(power=power))

    def restart(self) -> None:
        """The broker starts again on its old ports, with what its disk has."""
        self.run(self._rocketmq.restart())

    # what a test asks

    def pending(self, word: str | None = None) -> list[Transaction]:
        """The transactions that are undecided."""
        return self.run(_awaiting(self._rocketmq.pending(word)))

    def decided(self, word: str | None = None) -> list[Transaction]:
        """The transactions that are committed, rolled back or discarded."""
        return self.run(_awaiting(self._rocketmq.decided(word)))

    def messages(self, topic: str) -> list[MessageExt]:
        """What consumers of the topic find, in the order in which it was stored."""
        return self.run(_awaiting(self._rocketmq.messages(topic)))

    def committed(self, word: str) -> MessageExt:
        """The message of the transaction with that id or key, which consumers can see. Raises AssertionError."""
        return self.run(_awaiting(self._rocketmq.committed(word)))

    def rolled_back(self, word: str) -> Transaction:
        """The transaction with that id or key, which nobody will see. Raises AssertionError."""
        return self.run(_awaiting(self._rocketmq.rolled_back(word)))

    def commit_log(self) -> bytes:
        """All that is in the commit log, byte for byte."""
        return self._call(self._rocketmq.commit_log)

    def timeline(self, word: str) -> str:
        """The story of the message with that id or key."""
        return self._rocketmq.timeline(word)

    def story(self) -> str:
        """All that happened, the latest hundred events of it."""
        return self._rocketmq.story()

    # within

    def _call(self, function: Callable[[], T]) -> T:
        async def call() -> T:
            return function()

        return self.run(call())

    async def _awaited(self, work: Coroutine[Any, Any, T]) -> T:
        self._calls += 1
        try:
            with self._rocketmq.inside():
                return await work
        finally:
            # Here and not on the thread that waits: no time must pass before that has gone on.
            self._calls -= 1

    def _serve(self) -> None:
        with asyncio.Runner(loop_factory=self._time.new_loop) as runner:
            self._loop = runner.get_loop()
            self._loop.call_soon(self._is_ready.set)
            self._loop.run_forever()

    def _end(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join(_ENDS_WITHIN_S)


class SyncClient:
    """A producer or consumer whose methods are called without `await`, on any thread but its own."""

    def __init__(self, rocketmq: SyncRocketMQ, client: Producer | PushConsumer) -> None:
        self._rocketmq = rocketmq
        self._client = client

    def __getattr__(self, name: str) -> Any:
        """The client's own; a coroutine function becomes a function that waits for the result."""
        found = getattr(self._client, name)
        if not asyncio.iscoroutinefunction(found):
            return found

        def call(*args: Any, **named: Any) -> Any:
            return self._rocketmq.run(found(*args, **named))

        call.__name__, call.__doc__ = found.__name__, found.__doc__
        return call


async def _awaiting(asked: Asked[T]) -> T:
    return await asked
