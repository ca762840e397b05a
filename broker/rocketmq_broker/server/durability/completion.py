"""Completes writes once they are durable: notifies listeners, sends responses, and makes the messages visible to consumers.

While the broker runs, its commit log offsets have this order:

    SYNC_FLUSH    visible_to <= durable_to <= flushed_position <= written_position
    ASYNC_FLUSH   visible_to <= durable_to <= written_position
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

from rocketmq_broker.protocol.codes import ResponseCode, SerializeType
from rocketmq_broker.protocol.command import RESPONSE_FLAG, Answerable
from rocketmq_broker.protocol.command_codec import encode_frame
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.server.durability.put_times import PutTimes
from rocketmq_broker.store import MessageStore, StoreUnwritable


class FrameSink(Protocol):
    """A destination of responses, such as a Connection."""

    def send(self, frame: bytes) -> None:
        """Sends a complete frame."""

    def send_at_once(self, frames: list[bytes]) -> None:
        """Sends complete frames without waiting for more."""


_Answer: TypeAlias = tuple[int, FrameSink, SerializeType, int, CommandHeader | None, bytes]
"""A pending response: commit log offset, connection, serialize type and opaque of the request, header and body.

It does not contain the request, which would keep the body of each message in memory until the message is durable.
"""


class WaitingAnswers:
    """Responses and futures that wait until all records before a commit log offset are durable.

    Entries must be added in ascending order of their offsets.
    """

    def __init__(self) -> None:
        self._answers: deque[_Answer] = deque()
        self._futures: deque[tuple[int, asyncio.Future[None]]] = deque()

    def __bool__(self) -> bool:
        """Returns True if a response or a future is pending."""
        return bool(self._answers or self._futures)

    def add(self, position: int, sink: FrameSink, request: Answerable, header: CommandHeader | None, body: bytes) -> None:
        """Queues the response to a request until all records before `position` are durable."""
        self._answers.append((position, sink, request.serialize_type, request.opaque, header, body))

    def add_future(self, position: int, future: asyncio.Future[None]) -> None:
        """Queues a future until all records before `position` are durable."""
        self._futures.append((position, future))

    def succeed(self, position: int) -> None:
        """Sends the responses up to `position`, with one call for each connection, and completes the futures."""
        waiting = self._answers
        frames: dict[FrameSink, list[bytes]] = {}
        while waiting and waiting[0][0] <= position:
            _, sink, serialize_type, opaque, header, body = waiting.popleft()
            frame = encode_frame(serialize_type, ResponseCode.SUCCESS, header, RESPONSE_FLAG, opaque, None, body)
            if sink in frames:
                frames[sink].append(frame)
            else:
                frames[sink] = [frame]
        for sink, ready in frames.items():
            sink.send_at_once(ready)
        while self._futures and self._futures[0][0] <= position:
            _, future = self._futures.popleft()
            if not future.done():
                future.set_result(None)

    def fail_behind(self, position: int, remark: str) -> None:
        """Sends error responses for all records after `position`, because they are lost, and fails their futures."""
        lost = []
        while self._answers and self._answers[-1][0] > position:
            lost.append(self._answers.pop())
        for _, sink, serialize_type, opaque, _, body in reversed(lost):
            code = ResponseCode.SERVICE_NOT_AVAILABLE
            sink.send(encode_frame(serialize_type, code, None, RESPONSE_FLAG, opaque, remark, body))
        while self._futures and self._futures[-1][0] > position:
            _fail(self._futures.pop()[1], remark)

    def time_out(self, position: int, remark: str) -> None:
        """Sends FLUSH_DISK_TIMEOUT for all records up to `position`, and fails their futures.

        The records may still become durable.
        """
        while self._answers and self._answers[0][0] <= position:
            _, sink, serialize_type, opaque, header, body = self._answers.popleft()
            code = ResponseCode.FLUSH_DISK_TIMEOUT
            sink.send(encode_frame(serialize_type, code, header, RESPONSE_FLAG, opaque, remark, body))
        while self._futures and self._futures[0][0] <= position:
            _fail(self._futures.popleft()[1], remark)


def _fail(future: asyncio.Future[None], remark: str) -> None:
    if not future.done():
        future.set_exception(StoreUnwritable(remark))


_MIN_WATCH_S: Final = 0.1
_SLICE_S: Final = 0.005
_REQUESTS_AT_ONCE: Final = 200


class CommitListener(Protocol):
    """A listener that is notified when commit log records are durable or lost. `PendingTransactions` is such a listener."""

    def confirm(self, position: int) -> None:
        """Called when all records before `position` are as durable as flushDiskType requires.

        Consumers can read them afterwards.
        """

    def take_back(self, position: int) -> None:
        """Called when all records at or after `position`, a commit log offset, are lost."""


class Completion:
    """Reports the result of each write: completed, lost or timed out. Not thread-safe: use it on the event loop's thread."""

    def __init__(
        self,
        store: MessageStore,
        listeners: Sequence[CommitListener],
        waiting: WaitingAnswers,
        put_times: PutTimes,
        overdue_after_s: float,
    ) -> None:
        """Creates a Completion. `listeners` may be extended later. `put_times` observes the duration of each request."""
        self._store = store
        self._listeners = listeners
        self._waiting = waiting
        self._batches = WrittenBatches(put_times)
        self._overdue_after_s = overdue_after_s
        self._overdue: asyncio.TimerHandle | None = None
        self._durable_to = store.written_position
        self._is_under_way = False
        self._loop: asyncio.AbstractEventLoop
        self.visible_to = store.written_position
        """The commit log offset before which consumers can read all messages."""

    def start(self) -> None:
        """Stores the running event loop, because on CPython 3.11 each call of `asyncio.get_running_loop` calls getpid."""
        self._loop = asyncio.get_running_loop()

    def written(self, position: int, requests: int, began_s: float) -> None:
        """Records that requests were written up to `position`.

        `began_s` is the event loop's time when the first of these requests was appended.
        """
        self._batches.add(position, requests, began_s)

    def watch(self) -> None:
        """Starts the timer that sends FLUSH_DISK_TIMEOUT to overdue requests, unless the timer is already running."""
        if self._overdue is None:
            self._overdue = self._loop.call_later(self._overdue_after_s, self._answer_overdue)

    def stop(self) -> None:
        """Stops the timer."""
        if self._overdue is not None:
            self._overdue.cancel()

    def begin(self, position: int) -> None:
        """Completes all writes before `position`, a few batches at a time. After a disk hang, many requests may be pending."""
        self._durable_to = position
        if not self._is_under_way:
            self._go_on()

    def _go_on(self) -> None:
        self._is_under_way = False
        loop = self._loop
        slice_end_s = loop.time() + _SLICE_S
        while True:
            position = min(self._batches.end_of_first(_REQUESTS_AT_ONCE, self._durable_to), self._durable_to)
            self.complete(position)
            is_last = position == self._durable_to
            if not self._index_keeps_up(loop, slice_end_s) or (not is_last and loop.time() >= slice_end_s):
                self._is_under_way = True
                loop.call_soon(self._go_on)
                return
            if is_last:
                return

    def _index_keeps_up(self, loop: asyncio.AbstractEventLoop, until_s: float) -> bool:
        """Adds entries to the index until it contains all messages.

        Returns False if the event loop's time reaches `until_s` first.

        No response may be sent before its messages are in the index.
        """
        while self._store.is_index_behind:
            if loop.time() >= until_s:
                return False
            self._store.feed_index()
        return True

    def complete(self, position: int) -> None:
        """Completes all writes before `position` immediately."""
        # Responses are sent before messages become visible, so that clients can continue. A client's next request is handled
        # in a later turn of the event loop, when transactions are confirmed and messages are visible.
        for listener in self._listeners:
            listener.confirm(position)
        self._batches.completed(position, self._loop.time())
        self._waiting.succeed(position)
        self._store.publish(position)
        self.visible_to = max(self.visible_to, position)

    def lose_after(self, position: int, error: StoreUnwritable) -> None:
        """Reports to listeners and waiting clients that the records after `position` are lost."""
        for listener in self._listeners:
            listener.take_back(max(position, 0))
        self._batches.drop_behind(position)
        self._waiting.fail_behind(position, str(error))

    def _answer_overdue(self) -> None:
        """Responds to overdue requests with FLUSH_DISK_TIMEOUT. Their messages may still be stored, or may be lost."""
        self._overdue = None
        loop = self._loop
        overdue_to, next_began_s = self._batches.overdue(loop.time() - self._overdue_after_s)
        if next_began_s is not None:
            due_in_s = next_began_s + self._overdue_after_s - loop.time()
            self._overdue = loop.call_later(max(due_in_s, _MIN_WATCH_S), self._answer_overdue)
        self._waiting.time_out(overdue_to, f"flush timed out after {self._overdue_after_s:g} s")


class _Batch(NamedTuple):
    end_position: int
    requests: int
    began_s: float
    """The event loop's time when the first request of the batch was appended."""


class WrittenBatches:
    """Batches of records that are written to the commit log and not yet visible to consumers, oldest first."""

    def __init__(self, put_times: PutTimes) -> None:
        """Creates an empty list. `put_times` observes the duration of each batch."""
        self._batches: deque[_Batch] = deque()
        self._put_times = put_times

    def add(self, end_position: int, requests: int, began_s: float) -> None:
        """Adds a batch that ends at the commit log offset `end_position`."""
        self._batches.append(_Batch(end_position, requests, began_s))

    def end_of_first(self, requests: int, otherwise: int) -> int:
        """Returns the commit log offset after the first batches that together contain at least `requests` requests.

        Returns `otherwise` if there are fewer requests.
        """
        for batch in self._batches:
            requests -= batch.requests
            if requests <= 0:
                return batch.end_position
        return otherwise

    def completed(self, position: int, now_s: float) -> None:
        """Removes the batches before `position`, which consumers can now read. Observes the durations of these batches."""
        while self._batches and self._batches[0].end_position <= position:
            batch = self._batches.popleft()
            self._put_times.observe(now_s - batch.began_s, batch.requests)

    def drop_behind(self, position: int) -> None:
        """Removes the batches after `position`, which are lost."""
        while self._batches and self._batches[-1].end_position > position:
            self._batches.pop()

    def overdue(self, began_before_s: float) -> tuple[int, float | None]:
        """Returns the end offset of the last batch that began by `began_before_s`, or -1 if there is none.

        Also returns the start time of the next batch, or None if there is none.
        """
        position = -1
        for batch in self._batches:
            if batch.began_s > began_before_s:
                return position, batch.began_s
            position = batch.end_position
        return position, None
