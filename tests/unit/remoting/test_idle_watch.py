"""Idle connections are closed: those without traffic, and those whose frame is never complete."""

import logging

import pytest

from rocketmq_broker.remoting.connections.idle_watch import IdleWatch
from rocketmq_broker.remoting.limits import ConnectionLimits
from tests.unit.remoting.fake_loop import FakeLoop

LIMITS = ConnectionLimits(idle_timeout_s=100, frame_timeout_s=30)


class Watched:
    def __init__(self) -> None:
        self.loop = FakeLoop()
        self.watch = IdleWatch(self.loop.as_loop(), LIMITS)
        self.closed = 0

    def start(self) -> None:
        self.watch.start("10.0.0.1:5", self._close)

    def _close(self) -> None:
        self.closed += 1

    def moves(self) -> None:
        self.watch.moved_s = self.loop.now_s


@pytest.fixture
def watched() -> Watched:
    watched = Watched()
    watched.start()
    return watched


def test_a_connection_on_which_nothing_moves_is_closed_at_its_time(watched: Watched, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        watched.loop.pass_time(99.9)
        assert not watched.closed
        watched.loop.pass_time(0.2)
    assert watched.closed == 1
    assert "closing the connection of 10.0.0.1:5: it was idle for 100 s" in caplog.text


def test_whatever_moves_gives_it_all_its_time_again(watched: Watched) -> None:
    for _ in range(10):
        watched.loop.pass_time(90)
        watched.moves()
    assert not watched.closed
    watched.loop.pass_time(101)
    assert watched.closed == 1


def test_one_timer_serves_however_much_moves(watched: Watched) -> None:
    for _ in range(1000):
        watched.loop.pass_time(0.01)
        watched.moves()
    assert len(watched.loop.waiting) == 1


def test_a_frame_that_is_never_whole_ends_it_though_bytes_come(watched: Watched, caplog: pytest.LogCaptureFixture) -> None:
    watched.watch.frame_began_s = watched.loop.now_s
    for _ in range(20):
        watched.loop.pass_time(10)
        watched.moves()
    assert watched.closed == 1
    assert "a frame is incomplete after 100 s" in caplog.text


def test_a_frame_that_is_whole_in_time_ends_nothing(watched: Watched) -> None:
    watched.watch.frame_began_s = watched.loop.now_s
    watched.loop.pass_time(25)
    watched.moves()
    watched.watch.frame_began_s = 0.0
    watched.loop.pass_time(99)
    assert not watched.closed


def test_once_closed_it_is_not_closed_again(watched: Watched) -> None:
    watched.loop.pass_time(1000)
    assert watched.closed == 1
    assert watched.loop.waiting == []


def test_after_the_stop_nothing_is_closed(watched: Watched) -> None:
    watched.watch.stop()
    watched.loop.pass_time(1000)
    assert not watched.closed


def test_a_watch_that_never_began_can_be_stopped() -> None:
    Watched().watch.stop()
