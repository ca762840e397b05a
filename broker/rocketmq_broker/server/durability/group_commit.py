"""Writes and flushes many messages together (RocketMQ's GroupCommitService and FlushRealTimeService).

All messages appended in one turn of the event loop are written together. With SYNC_FLUSH they are flushed before their responses
are sent and consumers can read them. Messages that arrive during a flush share the next flush. With ASYNC_FLUSH the responses
are sent after the write. A flush follows every half second, or earlier if many bytes are unflushed."""

import asyncio
import logging
import os
from collections.abc import Callable
from typing import Final

from rocketmq_broker.protocol.command import Answerable
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.server.durability.checkpoints import Checkpoints
from rocketmq_broker.server.durability.completion import CommitListener, Completion, FrameSink, WaitingAnswers
from rocketmq_broker.server.durability.file_work import on_thread
from rocketmq_broker.server.durability.flush_thread import USUAL_FLUSHING
from rocketmq_broker.server.durability.flusher import NewFlushing
from rocketmq_broker.server.durability.put_times import PutTimes
from rocketmq_broker.server.statistics.histogram import Histogram
from rocketmq_broker.store import FlushDiskType, MessageStore, StoreUnwritable

logger = logging.getLogger(__name__)

MAX_UNFLUSHED_BYTES: Final = 128 << 20
"""The maximum number of unflushed bytes. New messages are refused while more bytes are unflushed.

At 64 MB/s, writing this amount takes 2 s. Producers wait 3 s by default.
"""
FLUSHED_AT_BYTES: Final = 16 << 20
"""The number of unflushed bytes that triggers an early flush with ASYNC_FLUSH. It limits the memory that these bytes take."""
MAX_UNPUBLISHED: Final = 100_000
"""The maximum number of messages that consumers cannot read yet. New messages are refused while there are more.

Each of these messages takes memory.
"""
_FLUSH_TIMES_S: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 5)


class GroupCommit:
    """Writes and flushes messages in groups, and sends their responses. Not thread-safe: use it on the event loop's thread."""

    def __init__(
        self,
        store: MessageStore,
        flush_disk_type: FlushDiskType,
        *,
        unwaited_delay_s: float = 0.001,
        flush_timeout_s: float = 5.0,
        async_flush_interval_s: float = 0.5,
        checkpoint_interval_s: float = 5.0,
        new_flushing: NewFlushing = USUAL_FLUSHING,
        on_broken: Callable[[str], object] = lambda reason: None,
    ) -> None:
        """Creates a GroupCommit. `unwaited_delay_s` is the delay before a flush of messages that no response waits for.

        `on_broken` is called with a reason when the store accepts no more writes until it is reopened.
        """
        self.listeners: list[CommitListener] = []
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
        """Measures the durations from append to durability."""
        self._completion = Completion(store, self.listeners, self._waiting, self.put_times, flush_timeout_s)
        self._flushing_to: int | None = None
        self._flush_began_s = 0.0
        self._delayed_flush: asyncio.TimerHandle | None = None
        self._flusher = new_flushing(self._on_answer, self._on_flusher, store.close_files)
        self._no_flusher: str | None = None
        self._on_broken = on_broken
        self._tasks = Tasks()
        self._loop: asyncio.AbstractEventLoop
        self.file_lock = asyncio.Lock()
        """The lock of the store's files. It is held while another thread uses the files, and while files in use are moved."""
        self.checkpoints = Checkpoints(store, self.file_lock, checkpoint_interval_s)
        self._next_segment = NextSegment(store, self._tasks)
        self.flushes = 0
        """The number of flushes started."""
        self.flush_times_s = Histogram(_FLUSH_TIMES_S)
        """The durations of successful flushes, in seconds."""

    async def start(self) -> None:
        """Starts the flush process and the background tasks. Raises OSError."""
        self._loop = asyncio.get_running_loop()
        self._completion.start()
        self._flusher.start()
        if not self._is_sync:
            self._tasks.every(self._async_flush_interval_s, "flush", self._flush)
        self._tasks.start("checkpoint", self.checkpoints.run())
        self._next_segment.prepare_if_due()

    async def stop(self) -> None:
        """Writes and flushes all messages, sends their responses, and stops the background tasks."""
        await self._tasks.stop()
        if self._delayed_flush is not None:
            self._delayed_flush.cancel()
        self._completion.stop()
        self._flusher.stop()
        self._flushing_to = None
        async with self.file_lock:
            try:
                self._store.flush()
            except StoreUnwritable as error:
                self._completion.lose_after(self._store.flushed_position, error)
            else:
                self._completion.complete(self._store.flushed_position)

    def give_up(self, reason: str) -> None:
        """Stops all writes to the store's files, and fails the pending requests.

        Call this method if another broker may be using the files.
        """
        self._store.give_up(reason)
        self._flushing_to = None
        self._completion.lose_after(-1, StoreUnwritable(reason))

    def appended(self, messages: int = 1) -> None:
        """Schedules a write at the end of this turn of the event loop. `messages` is the number of messages appended."""
        if not self._requests:
            self._requests_began_s = self._loop.time()
            self._loop.call_soon(self._write)
        self._requests += messages

    def after_durable(
        self, position: int, connection: FrameSink, request: Answerable, header: CommandHeader | None = None, body: bytes = b""
    ) -> None:
        """Responds to the request with SUCCESS once all records before `position` are durable, or with an error if they are lost.

        Positions must not decrease from call to call.
        """
        self._waiting.add(position, connection, request, header, body)

    def wait(self, position: int) -> asyncio.Future[None]:
        """Returns a future that completes when all records before `position` are durable and visible.

        Call this method right after appending.

        The future raises StoreUnwritable if the records are lost, or if the flush times out.
        """
        future: asyncio.Future[None] = self._loop.create_future()
        if position <= self._completion.visible_to:
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
            self._completion.lose_after(self._store.written_position, error)
            return
        self._completion.written(position, requests, self._requests_began_s)
        if self._is_sync:
            self._flush_soon()
            self._completion.watch()
        else:
            self._completion.begin(position)
            if position - self._store.flushed_position >= FLUSHED_AT_BYTES and not self._store.writability.is_failing:
                self._flush()
        self._note_backlog()
        self._next_segment.prepare_if_due()

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
            # The store has been flushed as a whole since this flush was scheduled.
            self._completion.begin(position)
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
                logger.warning("messages are accepted again: the data that could not be written is now written and flushed")
            self._store.mark_flushed(position)
            if self._is_sync:
                self._completion.begin(position)
                self._flush_soon()
        else:
            self._flush_failed(f"cannot flush the commit log: {os.strerror(error)}")
        self._note_backlog()

    def _flush_failed(self, reason: str) -> None:
        writability = self._store.writability
        writability.flush_failures += 1
        if not self._is_sync:
            # The records were acknowledged: keep them, and refuse new messages until they are flushed. The timer retries.
            if not writability.is_failing:
                self._store.note_flush_failed(reason)
                logger.error("%s", writability.refusal)
        else:
            logger.error("%s", reason)
            # Data that a failed flush did not write must not count as flushed after a later flush succeeds.
            self._completion.complete(self._store.flushed_position)
            self._store.abandon_unflushed()
            self._completion.lose_after(self._store.flushed_position, StoreUnwritable(reason))
            if writability.is_broken:
                self._on_broken(writability.refusal or reason)

    def _on_flusher(self, unavailable: str | None) -> None:
        self._no_flusher = unavailable
        self._note_backlog()

    def _note_backlog(self) -> None:
        """Refuses new messages while too many messages are unflushed.

        This limits the memory that messages take, and the number of messages lost in a crash.
        """
        store = self._store
        unflushed, unpublished = store.written_position - store.flushed_position, store.unpublished
        if unflushed > MAX_UNFLUSHED_BYTES or unpublished > MAX_UNPUBLISHED or self._no_flusher is not None:
            store.writability.note_busy(
                self._no_flusher or f"too many unflushed messages: {unpublished}, {unflushed} bytes; the disk is slow or hangs"
            )
        elif store.writability.is_busy and unflushed <= MAX_UNFLUSHED_BYTES // 2 and unpublished <= MAX_UNPUBLISHED // 2:
            store.writability.note_busy(None)


class NextSegment:
    """Creates the commit log's next segment in advance (RocketMQ's AllocateMappedFileService).

    A new segment and its directory entry must be synced before its messages are acknowledged, which takes two syncs. If the next
    segment is not ready in time, the log creates it when needed, or reports the error.
    """

    def __init__(self, store: MessageStore, tasks: Tasks) -> None:
        self._store = store
        self._tasks = tasks
        self._from_position = 0
        self._is_under_way = False

    def prepare_if_due(self) -> None:
        """Creates the next segment on another thread if the log will need the segment soon. Call this method after each write."""
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
            logger.warning("cannot create the next commit log segment in advance: %s", error)
            self._from_position = self._store.written_position + 1
        finally:
            self._is_under_way = False
        # The log may have grown while the segment was created.
        self.prepare_if_due()
