"""Connections and futures that wait for durability."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.store import StoreUnwritable


class FrameSink(Protocol):
    """A destination of answers: a Connection."""

    def send(self, frame: bytes) -> None:
        """Sends a whole frame."""

    def send_at_once(self, frames: list[bytes]) -> None:
        """Sends whole frames without waiting for more."""


class WaitingAnswers:
    """Answers and futures, each for a commit log offset before which everything must be durable. Offsets ascend."""

    def __init__(self) -> None:
        self._answers: deque[tuple[int, FrameSink, bytes]] = deque()
        self._futures: deque[tuple[int, asyncio.Future[None]]] = deque()

    def __bool__(self) -> bool:
        """Returns whether any answer or future waits."""
        return bool(self._answers or self._futures)

    def add(self, position: int, sink: FrameSink, frame: bytes) -> None:
        """Adds the answer to a connection."""
        self._answers.append((position, sink, frame))

    def add_future(self, position: int, future: asyncio.Future[None]) -> None:
        """Adds a future of another part of the broker."""
        self._futures.append((position, future))

    def succeed(self, position: int) -> None:
        """Sends the answers up to that offset, in one go to each connection, and completes the futures."""
        waiting = self._answers
        frames: dict[FrameSink, list[bytes]] = {}
        while waiting and waiting[0][0] <= position:
            _, sink, frame = waiting.popleft()
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
        for _, sink, frame in reversed(lost):
            sink.send(_answer_instead(frame, ResponseCode.SERVICE_NOT_AVAILABLE, remark, keep_header=False))
        while self._futures and self._futures[-1][0] > position:
            _fail(self._futures.pop()[1], remark)

    def time_out(self, position: int, remark: str) -> None:
        """Answers for records before that offset that they took too long; they may still become durable (FLUSH_DISK_TIMEOUT)."""
        while self._answers and self._answers[0][0] <= position:
            _, sink, frame = self._answers.popleft()
            sink.send(_answer_instead(frame, ResponseCode.FLUSH_DISK_TIMEOUT, remark, keep_header=True))
        while self._futures and self._futures[0][0] <= position:
            _fail(self._futures.popleft()[1], remark)


def _fail(future: asyncio.Future[None], remark: str) -> None:
    if not future.done():
        future.set_exception(StoreUnwritable(remark))


def _answer_instead(frame: bytes, code: ResponseCode, remark: str, *, keep_header: bool) -> bytes:
    """Returns the prepared answer with another code."""
    command = FrameDecoder(len(frame)).feed(frame)[0]
    command.code = code
    command.remark = remark
    if not keep_header:
        command.json_fields = type(command.json_fields)(b"")
        command.binary_fields = b""
    return command.encode()
