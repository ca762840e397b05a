"""Connections and futures that wait for durability.

An answer is encoded when its outcome is known: success, loss or time-out.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol, TypeAlias

from rocketmq_broker.protocol.codes import ResponseCode, SerializeType
from rocketmq_broker.protocol.command import Answerable, encode_answer
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.store import StoreUnwritable


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
