"""Consumer offsets of a group that stores its results in a database. Each offset is saved there before it is committed.

    listener returns ─> result is in the database ─> position in the database ─> offset at the broker

A broker's offset is therefore never ahead of the position in the database, unless the database lost data, for example
when a backup was restored. In that case, the messages after the database's position are delivered again.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from rocketmq_broker.client.errors import ClientError
from rocketmq_broker.client.pull.offset_store import OffsetStore
from rocketmq_broker.client.pull.queue_requests import QueueRequests
from rocketmq_broker.message import MessageQueue
from rocketmq_broker.world import RunFunction

logger = logging.getLogger(__name__)

SAVE_INTERVAL_S = 1.0
"""The interval in seconds at which positions are saved. After a crash, messages since the last save are redelivered."""
TIMEOUT_S = 5.0

T = TypeVar("T")


class PositionsUnavailable(ClientError):
    """Raised if the database that stores the positions does not respond. No offset is committed until it responds."""


@dataclass(frozen=True, slots=True)
class Setback:
    """A queue for which the database has lost results. Its messages after `position` are delivered again."""

    queue: MessageQueue
    position: int
    """The offset before which the database has the results of all messages."""
    consumed: int
    """The offset before which the group had consumed all messages."""
    expired: int
    """The number of messages between these two offsets that the broker no longer has."""
    is_new_database: bool
    """True if the database has no results at all."""


class ResultPositions(Protocol):
    """The positions in the database that stores the listener's results.

    `read`, `save` and `known_until_ms` run in a thread, one at a time. They raise an exception if the database does
    not respond, and no offset is committed until they succeed. The other methods must not block.
    """

    def read(self, queue: MessageQueue) -> int | None:
        """Returns the queue's position, or None."""

    def save(self, offsets: Mapping[MessageQueue, int]) -> Mapping[MessageQueue, int | None]:
        """Saves these positions durably, and returns an empty mapping.

        If the database has lost results or positions, saves nothing and returns the database's position of each queue.
        """

    def known_until_ms(self) -> int | None:
        """Returns the time, in milliseconds since the epoch, before which all stored messages have results.

        This time is used for queues without a position. Returns None if the database has no results.
        """

    def forget(self, queue: MessageQueue) -> None:
        """Removes the in-memory state of a queue that another member has taken over."""

    def begin_again(self, queue: MessageQueue) -> None:
        """Allows the next `save` to lower the queue's position."""

    def forget_results(self) -> None:
        """Removes the in-memory state of results that the database has lost."""

    def went_back(self, setbacks: Sequence[Setback]) -> None:
        """Handles a loss of results in the database. Messages of the queues in `setbacks` are delivered again."""


class _InThread:
    """Calls a database in daemon threads, which block neither the event loop nor the exit of the process."""

    def __init__(self, run_function: RunFunction | None) -> None:
        """`run_function` replaces the threads in a simulated world."""
        self._run_function = run_function
        self._turn = asyncio.Lock()
        self._is_busy = False
        self._why = ""

    async def __call__(self, work: Callable[[], T]) -> T:
        """Calls `work` and returns its result. If `work` fails, raises PositionsUnavailable and logs each new reason once."""
        async with self._turn:
            try:
                result: T = await (self._result(work) if self._run_function is None else self._run_function(work))
            except Exception as error:
                why = str(error)
                if why != self._why:
                    logger.warning("positions cannot be saved and offsets are not committed: %s", why)
                self._why = why
                raise PositionsUnavailable(why) from error
            self._why = ""
            return result

    async def _result(self, work: Callable[[], T]) -> T:
        if self._is_busy:
            raise TimeoutError("the results database has not responded to the previous call yet")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def end(give: Callable[[Any], None], outcome: Any) -> None:
            self._is_busy = False
            if not done.done():
                give(outcome)

        def run() -> None:
            try:
                ended = partial(end, done.set_result, work())
            except Exception as error:
                ended = partial(end, done.set_exception, error)
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(ended)

        self._is_busy = True
        threading.Thread(target=run, name="client-positions", daemon=True).start()
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await done
        except TimeoutError:
            raise TimeoutError(f"the results database did not respond within {TIMEOUT_S:g} s") from None


class ResultOffsetStore:
    """An `OffsetStore` that saves each offset in the database before it commits it at the broker."""

    def __init__(
        self,
        at_brokers: OffsetStore,
        results: ResultPositions,
        requests: QueueRequests,
        move: Callable[[MessageQueue, int], None],
        run_function: RunFunction | None = None,
    ) -> None:
        """`move` restarts a queue at an offset. `run_function` replaces threads in a simulated world."""
        self._at_brokers = at_brokers
        self._results = results
        self._requests = requests
        self._move = move
        self._in_thread = _InThread(run_function)
        self._offsets: dict[MessageQueue, int] = {}
        self._turn = asyncio.Lock()

    def update(self, queue: MessageQueue, offset: int) -> None:
        """Sets the offset in memory."""
        self._offsets[queue] = offset

    def forget(self, queue: MessageQueue) -> None:
        """Removes the offset of a queue that another member has taken over."""
        self._offsets.pop(queue, None)
        self._at_brokers.forget(queue)
        self._results.forget(queue)

    async def read(self, queue: MessageQueue) -> int | None:
        """Returns the smaller of the broker's offset and the database's position. Raises ClientError."""
        consumed = await self._at_brokers.read(queue)
        position = await self._in_thread(lambda: self._results.read(queue))
        if position is not None and position > (consumed or 0) and position > await self._requests.max_offset(queue):
            logger.warning(
                "%s ends before position %d in the database: the broker lost messages, or the queue is new", queue, position
            )
            self._results.begin_again(queue)
        if consumed is None:
            return None
        target, setback = await self._target(queue, position, consumed)
        if setback is not None:
            self._results.went_back([setback])
        return target

    async def persist(self, queues: Iterable[MessageQueue], *, confirmed: bool = False) -> None:
        """Saves all positions, then commits the offsets of `queues` at the brokers. Commits nothing if the database fails."""
        async with self._turn:
            offsets = dict(self._offsets)
            try:
                lacking = await self._in_thread(lambda: self._results.save(offsets))
                found = {queue: await self._target(queue, lacking[queue], offsets[queue]) for queue in lacking}
            except ClientError as error:
                logger.debug("no offset is committed: %s", error)
                return
            if found:
                offsets |= self._go_back(found, offsets)
            asked = sorted(offsets.keys() & {*queues, *found})
            for queue in asked:
                self._at_brokers.update(queue, offsets[queue])
            await self._at_brokers.persist(asked, confirmed=confirmed or bool(found))

    def _go_back(
        self, found: Mapping[MessageQueue, tuple[int, Setback | None]], offsets: Mapping[MessageQueue, int]
    ) -> dict[MessageQueue, int]:
        """Restarts the queues whose results the database has lost. Returns the new offsets."""
        self._results.forget_results()
        self._results.went_back([setback for _, setback in found.values() if setback is not None])
        for queue, (target, _) in found.items():
            self._results.forget(queue)
            if target < offsets[queue] and queue in self._offsets:
                self._offsets[queue] = target
                self._move(queue, target)
        return {queue: target for queue, (target, _) in found.items()}

    async def _target(self, queue: MessageQueue, position: int | None, consumed: int) -> tuple[int, Setback | None]:
        """Returns the offset at which to continue. Also returns the setback if the database has lost results, or else None."""
        known_until_ms = await self._in_thread(self._results.known_until_ms) if position is None else None
        if known_until_ms is not None:
            target = min(consumed, await self._requests.search_offset(queue, known_until_ms))
            if target < consumed:
                logger.info("the database has no position of %s yet: messages from offset %d are delivered again", queue, target)
            return target, None
        first = await self._requests.min_offset(queue) if position is None or position < consumed else 0
        target = first if position is None else position
        if target >= consumed:
            return consumed, None
        return target, Setback(queue, target, consumed, max(0, min(first, consumed) - target), position is None)
