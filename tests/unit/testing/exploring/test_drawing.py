"""Tests the plan of a seed for a user's programs, and the plan's text in one line."""

from collections import Counter

import pytest

from rocketmq_broker.testing.exploring.drawing import REQUEST, check_plan, one_line, plan_of
from rocketmq_broker.testing.exploring.fault_rows import FAULTS, world_parts
from rocketmq_broker.testing.simulation.plan import Plan, PlannedEvent, UnreadablePlan, read_plan

PROGRAMS = world_parts(["shop", "bank"])
ALL_PARTS = world_parts(["shop", "bank"], ["ledger"], ["credit"])


def test_a_seed_has_one_plan() -> None:
    assert plan_of(7, PROGRAMS, 5) == plan_of(7, PROGRAMS, 5)
    assert plan_of(7, PROGRAMS, 5) != plan_of(8, PROGRAMS, 5)


def test_a_plan_has_each_request_once_and_ends_after_its_faults() -> None:
    for seed in range(100):
        plan = plan_of(seed, PROGRAMS, 5)
        assert sorted(event.parameters["number"] for event in plan.events if event.what == REQUEST) == [1, 2, 3, 4, 5]
        assert all(event.ends_s < plan.ends_s for event in plan.events)
        check_plan(plan, PROGRAMS, FAULTS)


def test_each_kind_of_fault_is_drawn_and_each_target_is_hit() -> None:
    drawn = [event for seed in range(300) for event in plan_of(seed, ALL_PARTS, 5).events if event.what != REQUEST]
    assert set(Counter(event.what for event in drawn)) == set(FAULTS)
    assert {event.where for event in drawn if ">" not in event.where} == {
        "shop", "bank", "broker", "names", "ledger", "credit",
    }  # fmt: skip
    assert {event.where for event in drawn if ">" in event.where} >= {"shop>broker", "broker>shop", "broker>names", "names>bank"}


def test_faults_of_databases_and_calls_are_drawn_only_where_there_are_some() -> None:
    drawn = {event.what for seed in range(200) for event in plan_of(seed, PROGRAMS, 5).events}
    assert not [what for what in drawn if what.startswith(("database.", "call.l", "call.d", "call.r")) or "at_database" in what]


def test_a_world_without_requests_has_faults_too() -> None:
    assert any(plan_of(seed, world_parts(["shop"]), 0).events for seed in range(10))


def test_a_plan_in_one_line_is_read_as_the_same_plan() -> None:
    for seed in range(20):
        plan = plan_of(seed, PROGRAMS, 5)
        line = one_line(plan)
        assert "\n" not in line
        assert read_plan(line) == plan


@pytest.mark.parametrize(
    ("event", "complaint"),
    [
        (
            PlannedEvent(1, "process.kill", "store"),
            "process.kill at 1 s has an unknown target store: must be bank or broker or names or shop",
        ),
        (PlannedEvent(1, "process.tickle", "shop"), "unknown kind of event: process.tickle"),
        (PlannedEvent(1, REQUEST, "customer"), "parameter number must be an integer"),
    ],
)
def test_a_plan_of_another_world_is_refused(event: PlannedEvent, complaint: str) -> None:
    with pytest.raises(UnreadablePlan, match=complaint):
        check_plan(Plan(1, {}, (event,), 2), PROGRAMS, FAULTS)
