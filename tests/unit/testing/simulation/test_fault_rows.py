"""Faults are drawn from rows of a table: their targets, durations and parameters."""

from collections.abc import Sequence

import pytest

from rocketmq_broker.testing.simulation.chance import stream
from rocketmq_broker.testing.simulation.fault_rows import FaultRow, Values, drawn, drawn_faults, possible
from rocketmq_broker.testing.simulation.plan import PlannedEvent
from rocketmq_broker.world import Chance

PARTS = {"programs": ["shop", "bank"], "broker": ["broker"], "databases": []}
ROWS = {
    "process.kill": FaultRow("programs programs broker", (0.1, 20.0)),
    "network.lose_frames": FaultRow("broker", None, {"count": (1, 6)}, share=2),
}


def at_once(chance: Chance, targets: Sequence[str], earlier: Sequence[PlannedEvent]) -> tuple[float, Sequence[str]]:
    return float(len(earlier)), targets


@pytest.mark.parametrize(
    ("values", "kind", "low", "high"),
    [((1, 6), int, 1, 6), ((0.1, 20.0), float, 0.1, 20.0), ((-5.0, 5.0), float, -5.0, 5.0), ((0.1, 0.5, 1.0), float, 0.1, 1.0)],
)
def test_a_number_is_drawn_between_its_limits(values: Values, kind: type, low: float, high: float) -> None:
    numbers = [drawn(values, stream(seed)) for seed in range(500)]
    assert {type(number) for number in numbers} == {kind}
    assert low <= min(numbers) < (low + high) / 2 < max(numbers) <= high


def test_a_value_is_one_of_the_strings_or_of_three_numbers_or_that_of_a_function() -> None:
    assert {drawn(("before", "after"), stream(seed)) for seed in range(50)} == {"before", "after"}
    assert {drawn((0.1, 0.5, 1.0), stream(seed)) for seed in range(50)} == {0.1, 0.5, 1.0}
    assert drawn(lambda chance: "mine", stream(1)) == "mine"


def test_a_kind_without_target_or_share_is_not_possible() -> None:
    rows = {**ROWS, "database.hang": FaultRow("databases"), "outage": FaultRow("programs", share=0)}
    assert possible(rows, PARTS) == ROWS


def test_a_plan_with_more_faults_begins_with_those_of_a_plan_with_fewer() -> None:
    few, many = (drawn_faults(7, count, ROWS, PARTS, at_once) for count in (3, 30))
    assert many[:3] == few
    assert [fault.at_s for fault in many] == list(range(30))
    assert {(fault.what, fault.where) for fault in many} == {
        ("process.kill", "shop"), ("process.kill", "bank"), ("process.kill", "broker"), ("network.lose_frames", "broker"),
    }  # fmt: skip
    assert all((fault.for_s > 0) == (fault.what == "process.kill") for fault in many)
