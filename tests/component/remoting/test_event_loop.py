"""Tests that the broker's event loop makes one system call for each read."""

import asyncio
import selectors
import socket
from collections.abc import Iterator

import pytest

from rocketmq_broker.remoting import event_loop
from rocketmq_broker.remoting.event_loop import OnceAnswered, new_event_loop


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, peers = socket.socketpair()
    with ours, peers:
        yield ours, peers


def ready(selector: OnceAnswered, timeout: float | None) -> list[object]:
    return [key.fileobj for key, _ in selector.select(timeout)]


def test_after_an_answer_one_question_that_does_not_wait_is_left_out(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, peers = pair
    with OnceAnswered() as selector:
        selector.register(ours, selectors.EVENT_READ)
        assert ready(selector, 0) == []
        peers.send(b"x")
        assert [ready(selector, timeout) for timeout in (0, 0, 0, 0)] == [[ours], [], [ours], []]


def test_a_question_that_may_wait_is_always_asked(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, peers = pair
    with OnceAnswered() as selector:
        selector.register(ours, selectors.EVENT_READ)
        peers.send(b"x")
        assert [ready(selector, timeout) for timeout in (None, None, 60, 60)] == [[ours]] * 4


def test_calls_that_a_read_makes_come_before_the_next_read_as_in_asyncios_own_loop(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    """Data that a read appends is written before the next read, with asyncio's event loop and with the broker's."""
    assert what_happens(new_event_loop(), *pair) == what_happens(asyncio.SelectorEventLoop(), *pair)


def what_happens(loop: asyncio.AbstractEventLoop, ours: socket.socket, peers: socket.socket) -> list[str]:
    """Reads three bytes, one at a time. Each read schedules a call. Returns the sequence of reads and calls."""
    happened: list[str] = []

    def read() -> None:
        text = ours.recv(1).decode()
        happened.append(f"read {text}")
        loop.call_soon(write, text)

    def write(text: str) -> None:
        happened.append(f"write {text}")
        if text == "c":
            loop.stop()

    peers.send(b"abc")
    loop.add_reader(ours, read)
    loop.run_forever()
    loop.close()
    return happened


class RecordedSystem:
    """A fake selector with given results and durations, which records the timeouts. A poll without waiting takes 0.1 ms."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: tuple[float, bool]) -> None:
        self.asked: list[float | None] = []
        self._answers = list(answers)
        self._now_s = 0.0
        monkeypatch.setattr(event_loop, "perf_counter", lambda: self._now_s)
        monkeypatch.setattr(event_loop, "yield_processor", lambda: None)
        monkeypatch.setattr(selectors.DefaultSelector, "select", self._select)

    def _select(self, timeout: float | None = None) -> list[str]:
        self.asked.append(timeout)
        if timeout == 0:
            self._now_s += 0.000_1
            return []
        took_s, is_ready = self._answers.pop(0)
        self._now_s += took_s
        return ["file"] if is_ready else []


def test_after_a_short_wait_the_next_asks_for_a_moment_before_it_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    with OnceAnswered(0.000_3) as selector:
        system = RecordedSystem(monkeypatch, (0.000_1, True), (5.0, True), (5.0, True))
        for _ in range(3):
            selector.select(None)
    assert system.asked == [None, 0, 0, 0, None, None]


def test_what_comes_in_that_moment_is_found_without_a_sleep(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, peers = pair
    with OnceAnswered(3600) as selector:
        selector.register(ours, selectors.EVENT_READ)
        peers.send(b"x")
        assert ready(selector, None) == [ours]
        ours.recv(1)
        asked: list[float | None] = []
        select = selectors.DefaultSelector.select
        monkeypatch.setattr(
            selectors.DefaultSelector, "select", lambda it, timeout: (asked.append(timeout), select(it, timeout))[1]
        )
        monkeypatch.setattr(event_loop, "yield_processor", lambda: peers.send(b"y"))
        assert ready(selector, None) == [ours]
        assert asked == [0]


def test_a_wait_with_an_end_is_shorter_by_that_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    with OnceAnswered(0.000_3) as selector:
        system = RecordedSystem(monkeypatch, (0.000_1, True), (0.01, False), (0.000_1, True))
        for timeout in (None, 0.01, None, 0.000_15):
            selector.select(timeout)
    assert system.asked == [None, 0, 0, 0, pytest.approx(0.009_7), None, 0, 0, 0.0]


def test_without_busy_polling_each_wait_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    with OnceAnswered() as selector:
        system = RecordedSystem(monkeypatch, (0.0, True), (0.0, True))
        for _ in range(2):
            selector.select(None)
    assert system.asked == [None, None]
