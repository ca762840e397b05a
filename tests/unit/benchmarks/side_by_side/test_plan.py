"""Tests which measurements are made, and their order."""

from __future__ import annotations

import pytest

from lab.benchmarks.side_by_side.brokers import Side
from lab.benchmarks.side_by_side.plan import ASYNC, BY_GRPC, GENERATED, SYNC, Kind, Load, Plan, generated_loads, java_loads


def plan(*loads: Load, rounds: int = 1) -> Plan:
    return Plan(
        loads=loads,
        rounds=rounds,
        warm_up_s=10,
        seconds=10,
        body_size=1024,
        rate=1000,
        backlog=1000,
        pending=100,
        consumed=100,
    )


def test_sends_have_a_row_for_each_flush_and_each_number_in_flight() -> None:
    loads = generated_loads([Kind.TRANSACTIONS], [SYNC, ASYNC], [1, 32])
    assert [(load.flush, load.in_flight) for load in loads] == [(SYNC, 1), (SYNC, 32), (ASYNC, 1), (ASYNC, 32)]


def test_what_reads_a_store_has_one_row() -> None:
    loads = generated_loads([Kind.PULLS, Kind.CHECKS, Kind.RESTART], [SYNC, ASYNC], [1, 32])
    assert [load.kind for load in loads] == [Kind.PULLS, Kind.CHECKS, Kind.RESTART]


def test_rows_of_the_java_client_are_no_rows_of_the_generator() -> None:
    with pytest.raises(ValueError, match="needs Apache's Java client"):
        generated_loads([Kind.JAVA_CONSUMER], [SYNC], [1])


def test_the_java_client_has_a_row_with_a_consumer_after_those_with_threads() -> None:
    loads = java_loads([SYNC], ["JSON"], [1, 8], with_consumer=True)
    assert [load.name for load in loads] == ["SYNC JSON 1 Java threads", "SYNC JSON 8 Java threads", "SYNC JSON Java consumer"]


def test_both_brokers_are_measured_in_turn_and_the_other_one_first_in_every_second_round() -> None:
    load = Load(Kind.SENDS, SYNC, 1)
    runs = plan(load, rounds=2).runs()
    assert [(run.round, run.side) for run in runs] == [(0, Side.OURS), (0, Side.APACHE), (1, Side.APACHE), (1, Side.OURS)]


def test_more_is_wanted_where_the_disk_is_waited_for() -> None:
    assert [Load(Kind.TRANSACTIONS, flush, 32).wanted for flush in (SYNC, ASYNC)] == [3.0, 1.2]


def test_two_brokers_share_what_is_in_flight() -> None:
    (load,) = generated_loads([Kind.TWO_BROKERS], [SYNC, ASYNC], [1, 128])
    assert (load.flush, load.brokers, load.in_flight_at_each) == (ASYNC, 2, 64)


def test_every_row_of_everything_takes_time_in_the_estimate() -> None:
    loads = generated_loads([*GENERATED, *BY_GRPC], [SYNC], [1]) + java_loads([SYNC], ["JSON"], [1], with_consumer=True)
    estimates = plan(*loads)
    assert all(estimates.run_s(run) > 0 for run in estimates.runs())
    assert estimates.total_s() == pytest.approx(sum(estimates.run_s(run) for run in estimates.runs()))


def test_what_is_received_by_grpc_is_measured_once_for_each_number_in_flight() -> None:
    loads = generated_loads(BY_GRPC, [SYNC, ASYNC], [1, 32])
    assert [load.name for load in loads if load.kind is Kind.GRPC_RECEIVES] == [
        "ASYNC grpc-receives 1 in flight",
        "ASYNC grpc-receives 32 in flight",
    ]
