"""Group commit: one write and one flush for many messages (RocketMQ's GroupCommitService and FlushRealTimeService).

All messages appended within one iteration of the event loop are written together. With SYNC_FLUSH they are then flushed,
answered and made visible; later messages share the next flush. With ASYNC_FLUSH they are answered and made visible once written,
and flushed every half second, or sooner if many bytes wait."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from typing import Final

from rocketmq_broker.protocol.command import Answerable
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.server.durability.checkpoints import Checkpoints
from rocketmq_broker.server.durability.file_work import on_thread
from rocketmq_broker.server.durability.flusher import Flusher, NewFlushing
from rocketmq_broker.server.durability.put_times import PutTimes
from rocketmq_broker.server.durability.showing import CommitListener, FrameSink, Showing, WaitingAnswers
from rocketmq_broker.server.statistics.histogram import Histogram
from rocketmq_broker.store import FlushDiskType, MessageStore, StoreUnwritable

logger = logging.getLogger(__name__)

MAX_UNFLUSHED_BYTES: Final = 128 << 20
"""Beyond it sends are refused. Enough for two seconds of a disk that takes 64 MB/s; who sends waits no longer than three."""
FLUSHED_AT_BYTES: Final = 16 << 20
"""With ASYNC_FLUSH so many bytes do not wait for the interval: until they are flushed they are kept in memory, too."""
MAX_UNPUBLISHED: Final = 100_000
"""The same for messages, each of which takes memory until consumers can see it."""
_FLUSH_TIMES_S: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 5)


class GroupCommit:
    """Commits in groups: processors append, connections wait. Use it on the event loop's thread only."""

    def __init__(
        self,
        store: MessageStore,
        flush_disk_type: FlushDiskType,
        *,
        listeners: Sequence[CommitListener] = (),
        unwaited_delay_s: float = 0.001,
        flush_timeout_s: float = 5.0,
        async_flush_interval_s: float = 0.5,
        checkpoint_interval_s: float = 5.0,
        new_flushing: NewFlushing = Flusher,
        on_broken: Callable[[str], object] = lambda reason: None,
    ) -> None:
        """`unwaited_delay_s` is the longest delay of messages that nobody waits for, so that they share a flush.

        `on_broken` is told why the store takes nothing more until it is opened again.
        """
        self.listeners: list[CommitListener] = list(listeners)
        self._store = store
        self._is_sync = flush_disk_type is FlushDiskType.SYNC_FLUSH
        if not self._is_sync:
            store.keep_unflushed()
        self._unwaited_delay_s = unwaited_delay_s
        self._async_flush_interval_s = async_flush_interval_s
        self._waiting = WaitingAnswers()
        self._requests = 0
        self._requests_began_s = 0.0
        self.put_times = PutTimes()
        """The waits of storing requests for durability."""
        self._showing = Showing(store, self.listeners, self._waiting, self.put_times, flush_timeout_s)
        self._flushing_to: int | None = None
        self._flush_began_s = 0.0
        self._delayed_flush: asyncio.TimerHandle | None = None
        self._flusher = new_flushing(self._on_answer, self._on_flusher, store.close_files)
        self._no_flusher: str | None = None
        self._on_broken = on_broken
        self._tasks = Tasks()
        self._loop: asyncio.AbstractEventLoop
        self.file_lock = asyncio.Lock()
        """Held during work on the store's files on another thread, and while moving files that such work may use."""
        self.checkpoints = Checkpoints(store, self.file_lock, checkpoint_interval_s)
        self._next_segment = NextSegment(store, self._tasks)
        self.flushes = 0
        """The number of flushes begun."""
        self.flush_times_s = Histogram(_FLUSH_TIMES_S)
        """The times of successful flushes."""

    async def start(self) -> None:
        """Starts the flush process and the background work. Raises OSError."""
        self._loop = asyncio.get_running_loop()
        self._showing.start()
        self._flusher.start()
        if not self._is_sync:
            self._tasks.every(self._async_flush_interval_s, "flush", self._flush)
        self._tasks.start("checkpoint", self.checkpoints.run())
        self._next_segment.look()

    async def stop(self) -> None:
        """Writes, flushes and answers all waiting messages, and ends the background work."""
        await self._tasks.stop()
        if self._delayed_flush is not None:
            self._delayed_flush.cancel()
        self._showing.stop()
        self._flusher.stop()
        self._flushing_to = None
        async with self.file_lock:
            try:
                self._store.flush()
            except StoreUnwritable as error:
                self._showing.lose_after(self._store.flushed_position, error)
            else:
                self._showing.show(self._store.flushed_position)

    def give_up(self, reason: str) -> None:
        """Stops answering with success, and leaves the store's files alone: another broker may be using them."""
        self._store.give_up(reason)
        self._flushing_to = None
        self._showing.lose_after(-1, StoreUnwritable(reason))

    def appended(self, messages: int = 1) -> None:
        """Schedules the write of so many appended messages at the end of this turn of the event loop."""
        if not self._requests:
            self._requests_began_s = self._loop.time()
            self._loop.call_soon(self._write)
        self._requests += messages

    def after_durable(
        self, position: int, connection: FrameSink, request: Answerable, header: CommandHeader | None = None, body: bytes = b""
    ) -> None:
        """Answers the request with SUCCESS once everything before `position` is durable; with an error if it is lost.

        Positions must ascend, in the order of the appends.
        """
        self._waiting.add(position, connection, request, header, body)

    def wait(self, position: int) -> asyncio.Future[None]:
        """Returns a future that ends once everything before `position` is durable and visible. Call it right after appending.

        The future fails with StoreUnwritable if the records are lost, or take too long.
        """
        future: asyncio.Future[None] = self._loop.create_future()
        if position <= self._showing.visible_to:
            future.set_result(None)
        else:
            self._waiting.add_future(position, future)
            self.appended()
        return future

    def _write(self) -> None:
        requests, self._requests = self._requests, 0
        try:
            position = self._store.write()
        except StoreUnwritable as error:
            self._showing.lose_after(self._store.written_position, error)
            return
        self._showing.written(position, requests, self._requests_began_s)
        if self._is_sync:
            self._flush_soon()
            self._showing.watch()
        else:
            self._showing.begin(position)
            if position - self._store.flushed_position >= FLUSHED_AT_BYTES and not self._store.writability.is_failing:
                self._flush()
        self._note_backlog()
        self._next_segment.look()

    def _flush_soon(self) -> None:
        if self._flushing_to is not None:
            return
        if self._waiting:
            self._flush()
        elif self._delayed_flush is None and self._store.written_position > self._store.flushed_position:
            self._delayed_flush = self._loop.call_later(self._unwaited_delay_s, self._flush)

    def _flush(self) -> None:
        if self._delayed_flush is not None:
            self._delayed_flush.cancel()
            self._delayed_flush = None
        store = self._store
        position = store.written_position
        if self._flushing_to is not None or store.writability.is_given_up:
            return
        if position <= store.flushed_position:
            # The whole store was flushed in the meantime.
            self._showing.begin(position)
            return
        try:
            paths = store.segments_to_flush(store.flushed_position, position)
        except OSError as error:
            self._flush_failed(f"cannot write to the commit log: {error.strerror or error}")
            return
        self._flushing_to = position
        self._flush_began_s = self._loop.time()
        self.flushes += 1
        self._flusher.request(paths)

    def _on_answer(self, error: int) -> None:
        position, self._flushing_to = self._flushing_to, None
        if position is None:
            return
        if error == 0:
            self.flush_times_s.observe(self._loop.time() - self._flush_began_s)
            if self._store.writability.is_failing:
                logger.warning("messages are stored again: what the disk had refused was written once more, and is on it")
            self._store.mark_flushed(position)
            if self._is_sync:
                self._showing.begin(position)
                self._flush_soon()
        else:
            self._flush_failed(f"cannot flush the commit log: {os.strerror(error)}")
        self._note_backlog()

    def _flush_failed(self, reason: str) -> None:
        writability = self._store.writability
        writability.flush_failures += 1
        if not self._is_sync:
            # The record was acknowledged: keep it, and take no more until it is on the disk. The timer tries again.
            if not writability.is_failing:
                self._store.note_flush_failed(reason)
                logger.error("%s", writability.refusal)
        else:
            logger.error("%s", reason)
            # Data that the disk refused once must not count as flushed when a later flush succeeds.
            self._showing.show(self._store.flushed_position)
            self._store.abandon_unflushed()
            self._showing.lose_after(self._store.flushed_position, StoreUnwritable(reason))
            if writability.is_broken:
                self._on_broken(writability.refusal or reason)

    def _on_flusher(self, unavailable: str | None) -> None:
        self._no_flusher = unavailable
        self._note_backlog()

    def _note_backlog(self) -> None:
        """Refuses messages while too many wait for the disk. This bounds their number, their memory and the loss by a crash."""
        store = self._store
        unflushed, unpublished = store.written_position - store.flushed_position, store.unpublished
        if unflushed > MAX_UNFLUSHED_BYTES or unpublished > MAX_UNPUBLISHED or self._no_flusher is not None:
            store.writability.note_busy(
                self._no_flusher or f"{unpublished} messages, {unflushed} bytes, wait for a disk that is slow or hangs"
            )
        elif store.writability.is_busy and unflushed <= MAX_UNFLUSHED_BYTES // 2 and unpublished <= MAX_UNPUBLISHED // 2:
            store.writability.note_busy(None)


class NextSegment:
    """Prepares the commit log's next segment in advance (RocketMQ's AllocateMappedFileService), and decides so after each write.

    A new segment must be on disk, with its name, before its messages are acknowledged: that takes two syncs. The log itself makes
    a segment that is late, or reports why it cannot.
    """

    def __init__(self, store: MessageStore, tasks: Tasks) -> None:
        self._store = store
        self._tasks = tasks
        self._from_position = 0
        self._is_under_way = False

    def look(self) -> None:
        """Has the next segment made on another thread if it is time."""
        if self._store.written_position < self._from_position or self._is_under_way:
            return
        prepared = self._store.next_segment.to_prepare()
        if prepared is None:
            self._from_position = self._store.next_segment.prepare_from
            return
        self._is_under_way = True
        self._tasks.start("the next commit log segment", self._make(*prepared))

    async def _make(self, start: int, make: Callable[[], None]) -> None:
        try:
            await on_thread(make)
            self._store.next_segment.adopt(start)
        except OSError as error:
            logger.warning("the next commit log segment could not be made ahead of time: %s", error)
            self._from_position = self._store.written_position + 1
        finally:
            self._is_under_way = False
        # The log may have grown much meanwhile.
        self.look()
