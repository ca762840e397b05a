"""Tests the clock for durations and the clock for dates."""

import pytest

from rocketmq_broker.server.schedule.broker_clock import TOLERANCE_MS, BrokerClock
from tests.unit.server.conftest import START_MS

FOUR_DAYS_MS = 4 * 24 * 3_600_000


class Times:
    """The two clocks of a machine: the wall clock and the steady clock."""

    def __init__(self) -> None:
        self.wall_ms = START_MS
        self.steady_ns = 77_000_000
        self.part_of_ms_ns = 0

    @property
    def wall_ns(self) -> int:
        return self.wall_ms * 1_000_000 + self.part_of_ms_ns

    def pass_ms(self, span_ms: int) -> None:
        self.wall_ms += span_ms
        self.steady_ns += span_ms * 1_000_000


def clock_of(times: Times) -> BrokerClock:
    return BrokerClock(lambda: times.wall_ns, lambda: times.steady_ns)


def test_it_shows_the_wall_clocks_time() -> None:
    times = Times()
    clock = clock_of(times)
    times.pass_ms(1234)
    assert clock() == START_MS + 1234
    clock.follow()
    assert clock() == START_MS + 1234


@pytest.mark.parametrize("steady_part_ns", [100_000, 900_000])
def test_a_date_is_that_of_the_wall_clock_to_the_millisecond(steady_part_ns: int) -> None:
    times = Times()
    times.part_of_ms_ns = 300_000
    times.steady_ns += steady_part_ns
    clock = clock_of(times)
    for part_ns in (300_000, 999_999, 1_000_000, 1_600_000, 2_000_000):
        times.steady_ns += part_ns - times.part_of_ms_ns
        times.part_of_ms_ns = part_ns
        assert clock() == times.wall_ns // 1_000_000
        if part_ns == 1_600_000:
            clock.follow()


def test_it_goes_on_steadily_until_it_looks_at_the_wall_clock_again() -> None:
    times = Times()
    clock = clock_of(times)
    times.wall_ms += FOUR_DAYS_MS
    times.pass_ms(50)
    assert clock() == START_MS + 50
    times.wall_ms -= FOUR_DAYS_MS
    clock.follow()
    assert clock() == START_MS + 50


def test_who_compares_dates_is_told_of_a_leap_before_the_first_date_after_it() -> None:
    times = Times()
    clock = clock_of(times)
    told: list[tuple[int, int]] = []
    clock.on_step(lambda step_ms: told.append((step_ms, clock())))

    times.wall_ms += FOUR_DAYS_MS
    clock.follow()
    times.pass_ms(4000)
    times.wall_ms -= FOUR_DAYS_MS
    clock.follow()
    clock.follow()

    assert told == [(FOUR_DAYS_MS, START_MS), (-FOUR_DAYS_MS, START_MS + FOUR_DAYS_MS + 4000)]
    assert clock() == START_MS + 4000


def test_a_clock_that_is_slewed_has_not_leapt() -> None:
    times = Times()
    clock = clock_of(times)
    told: list[int] = []
    clock.on_step(told.append)
    for step_ms in (TOLERANCE_MS, -TOLERANCE_MS, -TOLERANCE_MS, 7):
        times.wall_ms += step_ms
        clock.follow()
        assert clock() == times.wall_ms
    assert told == []


def test_no_span_is_measured_by_the_wall_clock() -> None:
    times = Times()
    clock = clock_of(times)
    before = clock.steady_ms()
    times.wall_ms += FOUR_DAYS_MS
    clock.follow()
    times.pass_ms(10)
    assert clock.steady_ms() - before == 10
    assert clock.date_of(before) == START_MS + FOUR_DAYS_MS


def test_a_loop_that_stood_still_has_not_seen_a_leap() -> None:
    times = Times()
    clock = clock_of(times)
    told: list[int] = []
    clock.on_step(told.append)
    times.pass_ms(60_000)
    clock.follow()
    assert told == []
