"""Many messages, one write and one flush (RocketMQ's GroupCommitService and FlushRealTimeService).

What is appended within one iteration of the event loop is written together. With SYNC_FLUSH it is then brought to the disk,
made visible and answered; what comes in the meantime makes up the next flush. With ASYNC_FLUSH it is made visible and
answered once written, and brought to the disk every half second.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from broker.protocol.codes import ResponseCode
from broker.protocol.frame import FrameDecoder
from broker.remoting.tasks import Tasks
from broker.server.histogram import Histogram
from broker.server.put_times import PutTimes
from broker.store import FlushDiskType, MessageStore, StoreUnwritable
from broker.store.flush_process import FlushProcess

logger = logging.getLogger(__name__)

_CHECK_INTERVAL_S: Final = 1.0
_FLUSH_TIMES_S: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 5)


class FrameSink(Protocol):
    """Where answers go: a Connection."""

    def send(self, frame: bytes) -> None:
        """Sends a whole frame."""

    def send_at_once(self, frames: list[bytes]) -> None:
        """Sends whole frames, and waits for no others."""


class CommitListener(Protocol):
    """Who must know what the commit log can no longer lose; `PendingTransactions` is one."""

    def confirm(self, position: int) -> None:
        """What was appended before this commit log offset is as durable as the settings promise, and visible."""

    def take_back(self, position: int) -> None:
        """What was appended from this commit log offset on is lost."""


class _Waiter:
    """Somebody inside the broker who waits for durability as a connection does."""

    def __init__(self, future: asyncio.Future[None]) -> None:
        self._future = future

    def send(self, frame: bytes) -> None:
        """It is durable."""
        if not self._future.done():
            self._future.set_result(None)

    def send_at_once(self, frames: list[bytes]) -> None:
        """It is durable."""
        self.send(b"")

    def fail(self, error: Exception) -> None:
        """It is lost, or takes too long."""
        if not self._future.done():
            self._future.set_exception(error)


class _Batch(NamedTuple):
    """What was written in one go."""

    end_position: int
    requests: int
    began_s: float


class GroupCommit:
    """Between processors, which append, and connections, which wait. Use it on the event loop's thread only."""

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
    ) -> None:
        """`unwaited_delay_s` is how long what nobody waits for may wait for a flush to share."""
        self.listeners: list[CommitListener] = list(listeners)
        self._store = store
        self._is_sync = flush_disk_type is FlushDiskType.SYNC_FLUSH
        self._unwaited_delay_s = unwaited_delay_s
        self._flush_timeout_s = flush_timeout_s
        self._async_flush_interval_s = async_flush_interval_s
        self._checkpoint_interval_s = checkpoint_interval_s
        self._waiting: deque[tuple[int, FrameSink, bytes]] = deque()
        self._is_write_scheduled = False
        self._requests = 0
        self._requests_began_s = 0.0
        self._batches: deque[_Batch] = deque()
        self._flushing_to: int | None = None
        self._flush_began_s = 0.0
        self._delayed_flush: asyncio.TimerHandle | None = None
        self._overdue: asyncio.TimerHandle | None = None
        self._flushed: asyncio.Event = asyncio.Event()
        self._tasks = Tasks()
        self._loop: asyncio.AbstractEventLoop
        self._process: FlushProcess
        self.file_lock = asyncio.Lock()
        """Held by whoever works on the store's files on another thread, or moves files that such work may be about."""
        self.flushes = 0
        """How many flushes there were, for the statistics."""
        self.put_times = PutTimes()
        """How long requests that stored something waited until it was durable."""
        self.flush_times_s = Histogram(_FLUSH_TIMES_S)
        """How long those took that succeeded."""

    async def start(self) -> None:
        """Starts the flush process and the background work. Raises OSError."""
        self._loop = asyncio.get_running_loop()
        self._start_process()
        if not self._is_sync:
            self._tasks.every(self._async_flush_interval_s, "flush", self._flush)
        self._tasks.start("checkpoint", self._checkpoints())

    async def stop(self) -> None:
        """Writes and flushes what is still waiting, answers it, and ends the background work."""
        await self._tasks.stop()
        for timer in (self._delayed_flush, self._overdue):
            if timer is not None:
                timer.cancel()
        self._loop.remove_reader(self._process.fileno())
        self._process.close()
        self._flushing_to = None
        try:
            self._store.flush()
        except StoreUnwritable as error:
            self._lose_after(self._store.flushed_position, error)
        else:
            self._make_visible(self._store.flushed_position)

    def give_up(self, reason: str) -> None:
        """Answers nobody with success any more, and leaves the store's files as they are: another broker may be using them."""
        self._store.give_up(reason)
        self._flushing_to = None
        self._lose_after(-1, StoreUnwritable(reason))

    def appended(self) -> None:
        """A processor has appended to the store: it is written at the end of this iteration of the event loop."""
        self._requests += 1
        if not self._is_write_scheduled:
            self._is_write_scheduled = True
            self._requests_began_s = self._loop.time()
            self._loop.call_soon(self._write)

    def after_durable(self, position: int, connection: FrameSink, frame: bytes) -> None:
        """Sends the answer once everything before `position` is durable; an error in its stead if it is lost.

        Positions must come in ascending order, as appending hands them out.
        """
        self._waiting.append((position, connection, frame))

    def wait(self, position: int) -> asyncio.Future[None]:
        """Done once everything before `position` is durable. Call it right after appending, and await it when you like.

        Fails with StoreUnwritable if it is lost, or takes too long.
        """
        future: asyncio.Future[None] = self._loop.create_future()
        if position <= (self._store.flushed_position if self._is_sync else self._store.written_position):
            future.set_result(None)
        else:
            self.after_durable(position, _Waiter(future), b"")
            self.appended()
        return future

    def _write(self) -> None:
        self._is_write_scheduled = False
        requests, self._requests = self._requests, 0
        try:
            position = self._store.write()
        except StoreUnwritable as error:
            self._lose_after(self._store.written_position, error)
            return
        self._batches.append(_Batch(position, requests, self._requests_began_s))
        if self._is_sync:
            self._flush_soon()
        else:
            self._make_visible(position)

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
        if self._flushing_to is not None or store.is_given_up:
            return
        if position <= store.flushed_position:
            # Somebody flushed the whole store in the meantime.
            self._make_visible(position)
            return
        self._flushing_to = position
        self._flush_began_s = self._loop.time()
        if self._overdue is None and self._is_sync:
            self._overdue = self._loop.call_later(self._flush_timeout_s, self._answer_overdue)
        self.flushes += 1
        try:
            self._process.request(store.segments_to_flush(store.flushed_position, position))
        except OSError:
            self._replace_process()

    def _on_answer(self) -> None:
        try:
            error = self._process.answer()
        except OSError:
            self._replace_process()
            return
        position, self._flushing_to = self._flushing_to, None
        if position is None:
            return
        if error == 0:
            self.flush_times_s.observe(self._loop.time() - self._flush_began_s)
            self._store.mark_flushed(position)
            if self._is_sync:
                self._make_visible(position)
                self._flush_soon()
        else:
            self._flush_failed(f"cannot flush the commit log: {os.strerror(error)}")

    def _flush_failed(self, reason: str) -> None:
        logger.error("%s", reason)
        if self._is_sync:
            # What the disk refused once must not be taken for flushed when a later flush succeeds.
            self._store.abandon_unflushed()
            self._lose_after(self._store.flushed_position, StoreUnwritable(reason))

    def _make_visible(self, position: int) -> None:
        self._store.publish(position)
        for listener in self.listeners:
            listener.confirm(position)
        self._measure(position)
        waiting = self._waiting
        answers: dict[FrameSink, list[bytes]] = {}
        while waiting and waiting[0][0] <= position:
            _, connection, frame = waiting.popleft()
            if connection in answers:
                answers[connection].append(frame)
            else:
                answers[connection] = [frame]
        for connection, frames in answers.items():
            connection.send_at_once(frames)

    def _measure(self, position: int) -> None:
        while self._batches and self._batches[0].end_position <= position:
            batch = self._batches.popleft()
            self.put_times.observe(self._loop.time() - batch.began_s, batch.requests)

    def _lose_after(self, position: int, error: StoreUnwritable) -> None:
        for listener in self.listeners:
            listener.take_back(position)
        while self._batches and self._batches[-1].end_position > position:
            self._batches.pop()
        lost = []
        while self._waiting and self._waiting[-1][0] > position:
            lost.append(self._waiting.pop())
        for _, connection, frame in reversed(lost):
            if isinstance(connection, _Waiter):
                connection.fail(error)
            else:
                connection.send(_answer_instead(frame, ResponseCode.SERVICE_NOT_AVAILABLE, str(error), keep_header=False))

    def _answer_overdue(self) -> None:
        """The disk hangs: those who wait learn that their messages may or may not be stored (FLUSH_DISK_TIMEOUT)."""
        self._overdue = None
        if self._flushing_to is None:
            return
        left_s = self._flush_began_s + self._flush_timeout_s - self._loop.time()
        self._overdue = self._loop.call_later(left_s if left_s > 0 else _CHECK_INTERVAL_S, self._answer_overdue)
        if left_s > 0:
            return
        remark = f"the flush takes longer than {self._flush_timeout_s:g} s"
        while self._waiting and self._waiting[0][0] <= self._flushing_to:
            _, connection, frame = self._waiting.popleft()
            if isinstance(connection, _Waiter):
                connection.fail(StoreUnwritable(remark))
            else:
                connection.send(_answer_instead(frame, ResponseCode.FLUSH_DISK_TIMEOUT, remark, keep_header=True))

    def _start_process(self) -> None:
        self._process = FlushProcess()
        self._loop.add_reader(self._process.fileno(), self._on_answer)

    def _replace_process(self) -> None:
        logger.error("the flush process is gone; another one is started")
        self._loop.remove_reader(self._process.fileno())
        self._process.close()
        self._flushing_to = None
        try:
            self._start_process()
        except OSError as error:
            self._store.refuse_writes(f"the flush process cannot be started: {error}")
            self._flush_failed(f"the flush process cannot be started: {error}")
            return
        self._loop.call_soon(self._flush)

    async def _checkpoints(self) -> None:
        if self._store.recovery.was_stopped_cleanly:
            await asyncio.sleep(self._checkpoint_interval_s)
        # After a crash at once: a broker that crashes again and again must not recover more each time.
        while True:
            try:
                for _ in range(self._store.CHECKPOINT_ROUNDS):
                    async with self.file_lock:
                        mark = self._store.begin_checkpoint()
                        await asyncio.to_thread(_sync, mark.paths)
                        self._store.finish_checkpoint(mark)
            except (OSError, StoreUnwritable) as error:
                logger.error("no checkpoint was written; it is tried again in %g s: %s", self._checkpoint_interval_s, error)
            await asyncio.sleep(self._checkpoint_interval_s)


def _sync(paths: Sequence[Path]) -> None:
    for path in paths:
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            # Its topic was deleted, or it expired.
            continue
        try:
            os.fdatasync(file)
        finally:
            os.close(file)


def _answer_instead(frame: bytes, code: ResponseCode, remark: str, *, keep_header: bool) -> bytes:
    """The answer that was prepared, with another code."""
    command = FrameDecoder(len(frame)).feed(frame)[0]
    command.code = code
    command.remark = remark
    if not keep_header:
        command.json_fields = type(command.json_fields)(b"")
        command.binary_fields = b""
    return command.encode()
