"""Tests the output of the load generators."""

from lab.benchmarks.side_by_side.generator import added


def test_generators_at_several_brokers_count_as_one() -> None:
    one = {"began_s": 1.0, "ended_s": 5.0, "per_s": 10.0, "items": 40, "p50_ms": 2.0, "p99_ms": 9.0}
    other = {"began_s": 1.5, "ended_s": 5.5, "per_s": 20.0, "items": 80, "p50_ms": 1.0, "p99_ms": 10.0, "error": "refused"}
    assert added([one, other]) == {
        "began_s": 1.5,
        "ended_s": 5.0,
        "per_s": 30.0,
        "items": 120,
        "p50_ms": 2.0,
        "p99_ms": 10.0,
        "error": "refused",
    }


def test_brokers_are_warm_when_the_last_of_them_is() -> None:
    one, other = {"seconds": 10, "is_steady": True}, {"seconds": 40, "is_steady": False}
    assert added([one, other]) == added([other, one]) == {"seconds": 40, "is_steady": False}
