"""Tests the CPU time used between two times, and the list of other programs that used the machine."""

import pytest

from lab.benchmarks.side_by_side.usage import Reading, top_programs, used

READINGS = [
    Reading(at_s=100.0, broker_s=1.0, bench_s=0.5, machine_s=10.0),
    Reading(at_s=101.0, broker_s=2.0, bench_s=1.0, machine_s=12.0),
    Reading(at_s=102.0, broker_s=4.0, bench_s=1.5, machine_s=15.0),
]


def test_what_was_used_before_the_load_is_measured_does_not_count() -> None:
    assert used(READINGS, 101.0, 102.0).broker_s == pytest.approx(2.0)


def test_between_two_readings_cpu_time_counts_by_time() -> None:
    assert used(READINGS, 100.5, 101.5).broker_s == pytest.approx(0.5 + 1.0)


def test_what_neither_broker_nor_bench_used_is_the_others() -> None:
    assert used(READINGS, 101.0, 102.0).others_s == pytest.approx(3.0 - 2.0 - 0.5)


def test_the_others_used_nothing_where_clocks_differ_a_little() -> None:
    readings = [Reading(0, 0, 0, 0), Reading(1, 0.6, 0.5, 1.0)]
    assert used(readings, 0, 1).others_s == 0


def test_times_outside_of_the_readings_take_the_nearest_one() -> None:
    assert used(READINGS, 0.0, 1000.0).broker_s == pytest.approx(3.0)


def test_the_programs_that_used_most_are_named_by_name_without_our_own() -> None:
    before = {1: ("make", 5.0), 2: ("python", 1.0)}
    after = {1: ("make", 5.5), 2: ("python", 3.0), 3: ("python", 1.0), 4: ("broker", 99.0)}
    assert top_programs(before, after, own={4}) == [("python", 3.0), ("make", 0.5)]
