"""Tests which measurements are made, and their order."""

from typing import Any

import pytest

from lab.benchmarks.__main__ import QUICK_SECONDS, QUICK_STEADY_WITHIN_S
from lab.benchmarks.side_by_side.brokers import ASYNC, SYNC, Side
from lab.benchmarks.side_by_side.plan import BY_GRPC, GENERATED, Kind, Load, Plan, State, generated_loads, java_loads


def plan(*loads: Load, **changes: Any) -> Plan:
    usual = {"rounds": 1, "warm_up_s": 2, "steady_within_s": 40, "seconds": 10, "body_size": 1024}
    stored = {"rate": 1000, "backlog": 1000, "pending": 100, "consumed": 100}
    return Plan(loads=loads, **{**usual, **stored, **changes})


def test_sends_have_a_row_for_each_flush_and_each_number_in_flight() -> None:
    loads = generated_loads([Kind.TRANSACTIONS], [SYNC, ASYNC], [1, 32])
    assert [(load.flush, load.in_flight) for load in loads] == [(SYNC, 1), (SYNC, 32), (ASYNC, 1), (ASYNC, 32)]


def test_warm_rows_of_a_flush_type_share_a_process_and_cold_ones_do_not() -> None:
    loads = generated_loads([Kind.SENDS], [SYNC, ASYNC], [1, 32], [State.COLD, State.WARM])
    runs = [run for run in plan(*loads).runs() if run.side is Side.OURS]
    assert [[load.name for load in run.loads] for run in runs] == [
        ["SYNC sends 1 in flight, cold"],
        ["SYNC sends 32 in flight, cold"],
        ["ASYNC sends 1 in flight, cold"],
        ["ASYNC sends 32 in flight, cold"],
        ["SYNC sends 1 in flight, warm", "SYNC sends 32 in flight, warm"],
        ["ASYNC sends 1 in flight, warm", "ASYNC sends 32 in flight, warm"],
    ]
    assert runs[-1].name == "ASYNC sends 1 in flight, warm and 1 more, ours"


def test_rows_without_a_steady_load_have_no_state() -> None:
    loads = generated_loads([Kind.PULLS, Kind.LISTENER], [SYNC], [1], list(State))
    assert [load.name for load in loads] == ["ASYNC pulls", "SYNC listener"]


def test_the_floor_is_measured_where_it_serves_the_load() -> None:
    loads = generated_loads([Kind.TRANSACTIONS, Kind.PULLS], [SYNC], [1])
    runs = plan(*loads, sides=(Side.OURS, Side.FLOOR)).runs()
    assert [(run.load.kind, run.side) for run in runs] == [
        (Kind.TRANSACTIONS, Side.OURS),
        (Kind.TRANSACTIONS, Side.FLOOR),
        (Kind.PULLS, Side.OURS),
    ]


def test_the_quick_bench_of_four_brokers_takes_less_than_twelve_minutes() -> None:
    loads = generated_loads([Kind.TRANSACTIONS], [SYNC, ASYNC], [1, 32, 128], list(State))
    sides = (Side.OURS, Side.APACHE, Side.APACHE_5, Side.FLOOR)
    assert plan(*loads, sides=sides, seconds=QUICK_SECONDS, steady_within_s=QUICK_STEADY_WITHIN_S).total_s() < 12 * 60


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
    assert [Load(Kind.TRANSACTIONS, flush, 32).wanted for flush in (SYNC, ASYNC)] == [3.0, 1.5]


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
