"""Tests sending on a connection: gathered frames, one write, and a limit for a peer that does not read."""

import asyncio
import logging
from typing import Any, cast

import pytest

from rocketmq_broker.remoting.connections.sending_half import SendingHalf
from rocketmq_broker.remoting.limits import ConnectionLimits

LIMITS = ConnectionLimits(high_water_bytes=100, max_unsent_bytes=1000, close_timeout_s=3600)


class Transport:
    """A transport that keeps written data in its buffer until the test removes it."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.buffered = 0
        self.is_closed = False
        self.is_aborted = False

    def write(self, data: bytes) -> None:
        self.written.append(data)
        self.buffered += len(data)

    def get_write_buffer_size(self) -> int:
        return self.buffered

    def is_closing(self) -> bool:
        return self.is_closed or self.is_aborted

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_aborted = True


class Half(SendingHalf):
    """A sending half that counts the calls of `_note_memory`."""

    noted = 0

    def _note_memory(self) -> None:
        self.noted += 1


def half_with(transport: Transport, limits: ConnectionLimits = LIMITS) -> Half:
    half = Half(limits)
    half.secured_by(cast(Any, transport))
    return half


async def test_the_frames_of_one_turn_leave_in_one_write() -> None:
    transport = Transport()
    half = half_with(transport)
    for frame in (b"one", b"two", b"three"):
        half.send(frame)
    assert transport.written == []
    assert half.unsent_bytes == 11
    await asyncio.sleep(0)
    assert transport.written == [b"onetwothree"]


async def test_frames_that_cannot_wait_leave_after_those_before_them() -> None:
    transport = Transport()
    half = half_with(transport)
    half.send(b"one")
    half.send_at_once([b"two", b"three"])
    assert transport.written == [b"onetwothree"]
    await asyncio.sleep(0)
    assert transport.written == [b"onetwothree"]


async def test_a_burst_does_not_wait_for_the_end_of_the_turn() -> None:
    transport = Transport()
    half = half_with(transport)
    for _ in range(3):
        half.send(bytes(50))
    assert [len(data) for data in transport.written] == [150]


async def test_a_peer_that_does_not_read_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    transport = Transport()
    half = half_with(transport)
    half.send_at_once([bytes(1000)])
    assert not transport.is_aborted
    with caplog.at_level(logging.WARNING):
        half.send_at_once([b"x"])
    assert transport.is_aborted
    assert "the peer does not read the data sent to it" in caplog.text


async def test_much_that_is_unsent_is_noted_and_little_is_not() -> None:
    transport = Transport()
    half = half_with(transport, ConnectionLimits())
    half.send_at_once([bytes(4096)])
    assert half.noted == 0
    half.send_at_once([b"x"])
    assert half.noted == 1


async def test_before_it_is_connected_and_after_its_end_frames_are_dropped() -> None:
    half = Half(LIMITS)
    half.send(b"too soon")
    await asyncio.sleep(0)
    assert not half.is_open
    assert not half.is_writable
    transport = Transport()
    half = half_with(transport)
    transport.abort()
    half.send_at_once([b"too late"])
    assert transport.written == []
    assert half.unsent_bytes == 0


async def test_closing_sends_what_is_unsent_first_and_closes_once() -> None:
    transport = Transport()
    half = half_with(transport)
    half.send(b"last words")
    half.close()
    assert (transport.written, transport.is_closed, half.is_open) == ([b"last words"], True, False)
    half.close()
    assert half._give_up is not None
    half._give_up.cancel()


async def test_a_connection_that_never_was_can_be_closed() -> None:
    Half(LIMITS).close()


async def test_what_moves_is_noted_while_the_peer_keeps_up() -> None:
    transport = Transport()
    half = half_with(transport)
    half.send_at_once([b"x"])
    assert half._idle_watch.moved_s > 0
    half._idle_watch.moved_s = 0.0
    half._is_writable = False
    half.send_at_once([b"x"])
    assert half._idle_watch.moved_s == 0.0, "bytes that the peer does not take do not keep the connection alive"
