"""The broker's event loop asks the system once for each read."""

from __future__ import annotations

import asyncio
import selectors
import socket
from collections.abc import Iterator

import pytest

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
    """What is appended together is written together, whichever loop runs."""
    assert what_happens(new_event_loop(), *pair) == what_happens(asyncio.SelectorEventLoop(), *pair)


def what_happens(loop: asyncio.AbstractEventLoop, ours: socket.socket, peers: socket.socket) -> list[str]:
    """Reads three bytes, one at a time; each read makes a call."""
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
