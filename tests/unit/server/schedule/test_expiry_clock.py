"""Tests the clock that decides when files are deleted: a wrong clock deletes nothing."""

from rocketmq_broker.server.schedule.expiry_clock import BELIEVED_AFTER_MS, ExpiryClock
from tests.unit.server.conftest import START_MS

HOUR_MS = 3_600_000
FOUR_DAYS_MS = 96 * HOUR_MS


class Times:
    """A wall clock that tests set, and a steady clock."""

    def __init__(self) -> None:
        self.now_ms = START_MS
        self.steady_ms = 5

    def pass_ms(self, span_ms: int) -> None:
        self.now_ms += span_ms
        self.steady_ms += span_ms


def expiry_clock_of(times: Times, newest_ms: int | None = None, believed_ms: int | None = None) -> ExpiryClock:
    return ExpiryClock(lambda: times.now_ms, lambda: times.steady_ms, newest_ms, believed_ms)


def test_it_shows_the_time_while_nobody_sets_the_clock() -> None:
    times = Times()
    clock = expiry_clock_of(times)
    for span_ms in (10_000, 72 * HOUR_MS, 1):
        times.pass_ms(span_ms)
        assert clock() == times.now_ms


def test_a_clock_four_days_ahead_for_four_seconds_is_not_believed() -> None:
    times = Times()
    clock = expiry_clock_of(times)
    times.now_ms += FOUR_DAYS_MS
    assert clock() == START_MS
    times.pass_ms(4000)
    assert clock() == START_MS + 4000
    times.now_ms -= FOUR_DAYS_MS
    assert clock() == times.now_ms


def test_each_leap_has_to_stand_for_its_own_hour() -> None:
    times = Times()
    clock = expiry_clock_of(times)
    for _ in range(3):
        times.now_ms += FOUR_DAYS_MS
        assert clock() == times.now_ms - FOUR_DAYS_MS
        times.pass_ms(BELIEVED_AFTER_MS - 1)
        assert clock() == times.now_ms - FOUR_DAYS_MS
        times.now_ms -= FOUR_DAYS_MS
        assert clock() == times.now_ms


def test_a_clock_that_was_set_right_is_believed_after_an_hour() -> None:
    times = Times()
    clock = expiry_clock_of(times)
    times.now_ms += FOUR_DAYS_MS
    clock()
    times.pass_ms(BELIEVED_AFTER_MS)
    assert clock() == times.now_ms
    times.pass_ms(5)
    assert clock() == times.now_ms


def test_a_clock_set_back_is_believed_at_once() -> None:
    times = Times()
    clock = expiry_clock_of(times)
    times.now_ms -= FOUR_DAYS_MS
    assert clock() == times.now_ms


def test_a_machine_that_starts_with_a_clock_far_ahead_is_not_believed_for_an_hour() -> None:
    times = Times()
    clock = expiry_clock_of(times, newest_ms=START_MS - FOUR_DAYS_MS)
    assert clock() == START_MS - FOUR_DAYS_MS
    times.pass_ms(10_000)
    assert clock() == START_MS - FOUR_DAYS_MS + 10_000
    times.pass_ms(BELIEVED_AFTER_MS)
    assert clock() == times.now_ms


def test_a_newest_message_from_the_future_is_no_time_that_has_come() -> None:
    times = Times()
    assert expiry_clock_of(times, newest_ms=START_MS + FOUR_DAYS_MS)() == START_MS


def test_a_newest_message_by_a_clock_that_was_not_believed_does_not_vouch_for_it() -> None:
    times = Times()
    clock = expiry_clock_of(times, newest_ms=START_MS, believed_ms=START_MS - FOUR_DAYS_MS)
    assert clock() == START_MS - FOUR_DAYS_MS
    times.pass_ms(BELIEVED_AFTER_MS)
    assert clock() == times.now_ms
