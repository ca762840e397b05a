"""RocketMQ for synchronous tests. The broker runs on its own thread, and simulated time passes only during calls of the test."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar

from rocketmq_broker.client import Producer, PushConsumer
from rocketmq_broker.testing.queries import IS_ASSERTION
from rocketmq_broker.testing.rocketmq import LOOK_EVERY_S, REPEATABLE_START_MS, RocketMQ
from rocketmq_broker.testing.virtual_time import VirtualTime
from rocketmq_broker.world import current_world

P = ParamSpec("P")
T = TypeVar("T")
Client = TypeVar("Client", bound="Producer | PushConsumer")

__tracebackhide__ = IS_ASSERTION
_ENDS_WITHIN_S: Final = 10.0


def _awaited(
    asynchronous: Callable[Concatenate[RocketMQ, P], Awaitable[T]],
) -> Callable[Concatenate[SyncRocketMQ, P], T]:
    """Returns a method that runs a coroutine method of RocketMQ on its event loop, and waits for the result."""

    @wraps(asynchronous)
    def method(rocketmq: SyncRocketMQ, /, *args: P.args, **named: P.kwargs) -> T:
        async def work() -> T:
            return await asynchronous(rocketmq._rocketmq, *args, **named)

        return rocketmq.run(work())

    return method


def _called(function: Callable[Concatenate[RocketMQ, P], T]) -> Callable[Concatenate[SyncRocketMQ, P], T]:
    """Returns a method that runs a plain method of RocketMQ on its event loop."""

    @wraps(function)
    async def work(rocketmq: RocketMQ, /, *args: P.args, **named: P.kwargs) -> T:
        return function(rocketmq, *args, **named)

    return _awaited(work)


def _client(
    started: Callable[Concatenate[RocketMQ, P], Awaitable[Client]],
) -> Callable[Concatenate[SyncRocketMQ, P], SyncClient]:
    """Returns a method that starts a client with a method of RocketMQ, and wraps the client."""
    start = _awaited(started)

    @wraps(started)
    def method(rocketmq: SyncRocketMQ, /, *args: P.args, **named: P.kwargs) -> SyncClient:
        return SyncClient(rocketmq, start(rocketmq, *args, **named))

    return method


class SyncRocketMQ:
    """A RocketMQ that runs between `start` and `stop`, or in `with SyncRocketMQ() as rocketmq:`.

    Any thread except the broker's own may call the methods. The simulated clock advances only during a call. The methods are
    those of RocketMQ, called without `await`. See RocketMQ for their documentation.
    """

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        *,
        store: Path | None = None,
        seed: int | None = None,
        start_ms: int | None = None,
    ) -> None:
        """Creates a stopped broker. The arguments are those of RocketMQ. Raises ConfigError."""
        if start_ms is None:
            start_ms = REPEATABLE_START_MS if seed is not None else current_world().wall_ms()
        self._calls = 0
        self._time = VirtualTime(start_ms, is_awaited=lambda: self._calls > 0)
        self._rocketmq = RocketMQ(settings, store=store, seed=seed, time=self._time)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._serve, name="rocketmq", daemon=True)
        self._is_ready = threading.Event()

    def start(self) -> None:
        """Starts the broker. Raises StartError."""
        self._thread.start()
        self._is_ready.wait()
        try:
            self.run(self._rocketmq.start())
        except BaseException:
            self._end()
            raise

    def stop(self) -> None:
        """Shuts down the clients that were started with this object, and stops the broker."""
        try:
            self.run(self._rocketmq.stop())
        finally:
            self._end()

    def __enter__(self) -> Self:
        """Starts the broker. Returns this object."""
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stops the broker."""
        self.stop()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the broker's event loop, with the simulated clock and network. Returns its result."""
        if threading.current_thread() is self._thread or self._loop is None:
            work.close()
            raise RuntimeError(
                "cannot wait on the event loop's own thread: await the coroutine" if self._loop else "not running: call start()"
            )
        running = asyncio.run_coroutine_threadsafe(self._inside(work), self._loop)
        if (error := running.exception()) is not None:
            raise error  # raised here and not within concurrent.futures, so that a report shows only the test's line
        return running.result()

    # addresses

    @property
    def namesrv_addr(self) -> str:
        """The value for clients' NAMESRV_ADDR. Clients on other threads and in other processes may use it too."""
        return self._rocketmq.namesrv_addr

    @property
    def grpc_endpoint(self) -> str | None:
        """The address for RocketMQ 5 clients. None unless the settings have a `grpcServerPort`."""
        return self._rocketmq.grpc_endpoint

    @property
    def broker_addr(self) -> str:
        """The broker's address."""
        return self._rocketmq.broker_addr

    @property
    def is_running(self) -> bool:
        """Whether the broker is running."""
        return self._rocketmq.is_running

    @property
    def is_disk_full(self) -> bool:
        """Whether the broker's disk is full."""
        return self._rocketmq.is_disk_full

    @property
    def elapsed_s(self) -> float:
        """The seconds of simulated time since `start`."""
        return self._time.elapsed_s

    # clients, whose methods are called without `await`

    producer = _client(RocketMQ.producer)
    transaction_producer = _client(RocketMQ.transaction_producer)
    consumer = _client(RocketMQ.consumer)

    # time

    advance = _awaited(RocketMQ.advance)
    settle = _awaited(RocketMQ.settle)

    def wait_until(self, condition: Callable[[], T], *, seconds: float = 60, minutes: float = 0, what: str = "") -> T:
        """Advances the clock until the condition holds, and returns the condition's value.

        Raises AssertionError if the condition does not hold within `minutes` plus `seconds` of simulated time. `what` names the
        condition in the error. The condition is called on the test's thread.
        """
        wait_s = seconds + 60 * minutes
        end_s = self.elapsed_s + wait_s
        while not (found := condition()):
            if self.elapsed_s >= end_s:
                raise AssertionError(f"timed out after {wait_s:g} s, waiting for {what or 'the condition'}\n{self.story()}")
            self.advance(seconds=LOOK_EVERY_S)
        return found

    # faults

    lose_next_decision = _called(RocketMQ.lose_next_decision)
    lose_next_answer = _called(RocketMQ.lose_next_answer)
    release_check_backs = _called(RocketMQ.release_check_backs)
    cut_connections = _called(RocketMQ.cut_connections)
    refuse_sends = _called(RocketMQ.refuse_sends)
    accept_sends = _called(RocketMQ.accept_sends)
    fill_disk = _called(RocketMQ.fill_disk)
    free_disk = _called(RocketMQ.free_disk)
    as_apache = _called(RocketMQ.as_apache)
    crash = _awaited(RocketMQ.crash)
    restart = _awaited(RocketMQ.restart)

    @contextmanager
    def hold_check_backs(self) -> Iterator[None]:
        """Holds check-backs until the end of the `with` block, then sends them."""
        self._rocketmq.faults.are_checks_held = True
        try:
            yield
        finally:
            self.release_check_backs()

    # queries

    pending = _awaited(RocketMQ.pending)
    decided = _awaited(RocketMQ.decided)
    messages = _awaited(RocketMQ.messages)
    committed = _awaited(RocketMQ.committed)
    rolled_back = _awaited(RocketMQ.rolled_back)
    commit_log = _called(RocketMQ.commit_log)
    stored_file = _called(RocketMQ.stored_file)

    def timeline(self, word: str) -> str:
        """Returns the timeline of the message with the id or key `word`."""
        return self._rocketmq.timeline(word)

    def story(self) -> str:
        """Returns the latest hundred events with their times."""
        return self._rocketmq.story()

    # internals

    async def _inside(self, work: Coroutine[Any, Any, T]) -> T:
        self._calls += 1
        try:
            with self._rocketmq.inside():
                return await work
        finally:
            # Counted here and not on the waiting thread, so that no time passes before that thread continues.
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
    """A producer or consumer whose methods are called without `await`, on any thread except the broker's."""

    def __init__(self, rocketmq: SyncRocketMQ, client: Producer | PushConsumer) -> None:
        self._rocketmq = rocketmq
        self._client = client

    def __getattr__(self, name: str) -> Any:
        """Returns the client's attribute. A coroutine function is wrapped in a function that waits for the result."""
        found = getattr(self._client, name)
        if not inspect.iscoroutinefunction(found):
            return found

        def call(*args: Any, **named: Any) -> Any:
            return self._rocketmq.run(found(*args, **named))

        call.__name__, call.__doc__ = found.__name__, found.__doc__
        return call
