"""Completes writes once they are durable: listeners hear of them, clients get their answers, and readers see the messages."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

from rocketmq_broker.protocol.codes import ResponseCode, SerializeType
from rocketmq_broker.protocol.command import Answerable, encode_answer
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.server.durability.put_times import PutTimes
from rocketmq_broker.store import MessageStore, StoreUnwritable


class FrameSink(Protocol):
    """A destination of answers: a Connection."""

    def send(self, frame: bytes) -> None:
        """Sends a whole frame."""

    def send_at_once(self, frames: list[bytes]) -> None:
        """Sends whole frames without waiting for more."""


_Answer: TypeAlias = tuple[int, FrameSink, SerializeType, int, CommandHeader | None, bytes]
"""A commit log offset, a connection, serializer and opaque of the request, and header and body of the answer.

A tuple, and not the request: that would keep the body of each message in memory until it is durable.
"""


class WaitingAnswers:
    """Answers and futures, each for a commit log offset before which everything must be durable. Offsets ascend."""

    def __init__(self) -> None:
        self._answers: deque[_Answer] = deque()
        self._futures: deque[tuple[int, asyncio.Future[None]]] = deque()

    def __bool__(self) -> bool:
        """Returns whether any answer or future waits."""
        return bool(self._answers or self._futures)

    def add(self, position: int, sink: FrameSink, request: Answerable, header: CommandHeader | None, body: bytes) -> None:
        """Queues the answer to a request."""
        self._answers.append((position, sink, request.serialize_type, request.opaque, header, body))

    def add_future(self, position: int, future: asyncio.Future[None]) -> None:
        """Queues a future of another part of the broker."""
        self._futures.append((position, future))

    def succeed(self, position: int) -> None:
        """Sends the answers up to that offset, in one go to each connection, and completes the futures."""
        waiting = self._answers
        frames: dict[FrameSink, list[bytes]] = {}
        while waiting and waiting[0][0] <= position:
            _, sink, serialize_type, opaque, header, body = waiting.popleft()
            frame = encode_answer(serialize_type, opaque, ResponseCode.SUCCESS, header, body)
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
        """Answers with errors for all records after that offset, which are lost. The errors omit positions."""
        lost = []
        while self._answers and self._answers[-1][0] > position:
            lost.append(self._answers.pop())
        for _, sink, serialize_type, opaque, _, body in reversed(lost):
            sink.send(encode_answer(serialize_type, opaque, ResponseCode.SERVICE_NOT_AVAILABLE, None, body, remark))
        while self._futures and self._futures[-1][0] > position:
            _fail(self._futures.pop()[1], remark)

    def time_out(self, position: int, remark: str) -> None:
        """Answers for records up to that offset that they took too long; they may still become durable (FLUSH_DISK_TIMEOUT)."""
        while self._answers and self._answers[0][0] <= position:
            _, sink, serialize_type, opaque, header, body = self._answers.popleft()
            sink.send(encode_answer(serialize_type, opaque, ResponseCode.FLUSH_DISK_TIMEOUT, header, body, remark))
        while self._futures and self._futures[0][0] <= position:
            _fail(self._futures.popleft()[1], remark)


def _fail(future: asyncio.Future[None], remark: str) -> None:
    if not future.done():
        future.set_exception(StoreUnwritable(remark))


_MIN_WATCH_S: Final = 0.1
_SLICE_S: Final = 0.005
_REQUESTS_SHOWN_AT_ONCE: Final = 200


class CommitListener(Protocol):
    """A listener to the durability of the commit log; `PendingTransactions` is one."""

    def confirm(self, position: int) -> None:
        """Notes that all records before this commit log offset are as durable as the settings promise. Readers see them next."""

    def take_back(self, position: int) -> None:
        """Notes the loss of all records at or after this commit log offset."""


class Showing:
    """Brings written records to one of three ends: answered and visible, lost, or overdue. Use it on the event loop's thread."""

    def __init__(
        self,
        store: MessageStore,
        listeners: Sequence[CommitListener],
        waiting: WaitingAnswers,
        put_times: PutTimes,
        overdue_after_s: float,
    ) -> None:
        """Listeners may join later. `put_times` observes the time of each request."""
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
        """Everything before this commit log offset is visible."""

    def start(self) -> None:
        """Takes the running event loop, which each write needs: CPython 3.11 calls getpid each time that it is asked for it."""
        self._loop = asyncio.get_running_loop()

    def written(self, position: int, requests: int, began_s: float) -> None:
        """Notes that so many requests were written up to that offset; the first came at `began_s` on the event loop's clock."""
        self._batches.add(position, requests, began_s)

    def watch(self) -> None:
        """Answers FLUSH_DISK_TIMEOUT to requests that wait too long after this."""
        if self._overdue is None:
            self._overdue = self._loop.call_later(self._overdue_after_s, self._answer_overdue)

    def stop(self) -> None:
        """Ends the watch."""
        if self._overdue is not None:
            self._overdue.cancel()

    def begin(self, position: int) -> None:
        """Shows everything before that offset, a few batches at a time: very many may wait after a disk that hung."""
        self._durable_to = position
        if not self._is_under_way:
            self._go_on()

    def _go_on(self) -> None:
        self._is_under_way = False
        loop = self._loop
        slice_end_s = loop.time() + _SLICE_S
        while True:
            position = min(self._batches.end_of_first(_REQUESTS_SHOWN_AT_ONCE, self._durable_to), self._durable_to)
            self.show(position)
            is_last = position == self._durable_to
            if not self._index_keeps_up(loop, slice_end_s) or (not is_last and loop.time() >= slice_end_s):
                self._is_under_way = True
                loop.call_soon(self._go_on)
                return
            if is_last:
                return

    def _index_keeps_up(self, loop: asyncio.AbstractEventLoop, until_s: float) -> bool:
        """Feeds the index until it has caught up. Returns False at `until_s`: answers must not get ahead of the index."""
        while self._store.is_index_behind:
            if loop.time() >= until_s:
                return False
            self._store.feed_index()
        return True

    def show(self, position: int) -> None:
        """Shows everything before that offset at once."""
        # What is durable is answered first: its client works on while readers get to see the message. Whatever the client asks
        # next is handled in a later turn of the event loop, and finds transactions confirmed and messages visible.
        for listener in self._listeners:
            listener.confirm(position)
        self._batches.shown(position, self._loop.time())
        self._waiting.succeed(position)
        self._store.publish(position)
        self.visible_to = max(self.visible_to, position)

    def lose_after(self, position: int, error: StoreUnwritable) -> None:
        """Reports to listeners and waiting clients that the records behind that offset are lost."""
        for listener in self._listeners:
            listener.take_back(max(position, 0))
        self._batches.drop_behind(position)
        self._waiting.fail_behind(position, str(error))

    def _answer_overdue(self) -> None:
        """Answers overdue requests: their message may or may not be stored (FLUSH_DISK_TIMEOUT)."""
        self._overdue = None
        loop = self._loop
        overdue_to, next_began_s = self._batches.overdue(loop.time() - self._overdue_after_s)
        if next_began_s is not None:
            due_in_s = next_began_s + self._overdue_after_s - loop.time()
            self._overdue = loop.call_later(max(due_in_s, _MIN_WATCH_S), self._answer_overdue)
        self._waiting.time_out(overdue_to, f"the flush takes longer than {self._overdue_after_s:g} s")


class _Batch(NamedTuple):
    end_position: int
    requests: int
    began_s: float
    """The time at which its first request was appended, on the event loop's clock."""


class WrittenBatches:
    """Batches of records that are written to the commit log, but not visible yet; oldest first."""

    def __init__(self, put_times: PutTimes) -> None:
        """`put_times` observes the time of each batch."""
        self._batches: deque[_Batch] = deque()
        self._put_times = put_times

    def add(self, end_position: int, requests: int, began_s: float) -> None:
        """Adds a batch of so many requests that ends at that commit log offset."""
        self._batches.append(_Batch(end_position, requests, began_s))

    def end_of_first(self, requests: int, otherwise: int) -> int:
        """Returns the end of the first batches with so many requests in all; `otherwise` if there are fewer."""
        for batch in self._batches:
            requests -= batch.requests
            if requests <= 0:
                return batch.end_position
        return otherwise

    def shown(self, position: int, now_s: float) -> None:
        """Removes the batches before that offset, which are visible now, and observes their times."""
        while self._batches and self._batches[0].end_position <= position:
            batch = self._batches.popleft()
            self._put_times.observe(now_s - batch.began_s, batch.requests)

    def drop_behind(self, position: int) -> None:
        """Removes the batches after that offset, which are lost."""
        while self._batches and self._batches[-1].end_position > position:
            self._batches.pop()

    def overdue(self, began_before_s: float) -> tuple[int, float | None]:
        """Returns the end of the last batch that began by then, -1 for none, and the start of the first later one."""
        position = -1
        for batch in self._batches:
            if batch.began_s > began_before_s:
                return position, batch.began_s
            position = batch.end_position
        return position, None
