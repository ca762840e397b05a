"""The plans of many seeds contain all kinds of faults, each with a target and parameters that fit its world."""

from collections import Counter
from functools import cache

import pytest

from lab.simulation.action_kinds import ActionKind
from lab.simulation.plans import plan_of
from lab.simulation.plans.fault_table import FAULTS, parts_of
from lab.simulation.plans.fitting import shape_for
from lab.simulation.shapes import SIMPLEST, WorldShape
from rocketmq_broker.testing.simulation.plan import Plan, PlannedEvent, UnreadablePlan, read_plan

ACTIONS = frozenset(ActionKind)
FAULT_KINDS = frozenset(FAULTS)
OFTEN = frozenset(kind for kind, row in FAULTS.items() if row.share)
IN_CHAINS = FAULT_KINDS - OFTEN - {"outage"}


@cache
def many() -> list[Plan]:
    return [plan_of(seed) for seed in range(1000)]


@cache
def few() -> list[Plan]:
    return [plan_of(seed) for seed in range(200)]


@pytest.mark.slow
def test_each_kind_of_fault_that_any_world_may_have_is_planned_more_than_eighty_times_in_a_thousand_seeds() -> None:
    planned = Counter(event.what for plan in many() for event in plan.events)
    assert {kind: planned[kind] for kind in OFTEN if planned[kind] <= 80} == {}


@pytest.mark.slow
def test_each_kind_of_fault_that_occurs_only_in_chains_is_planned_more_than_eight_times_in_a_thousand_seeds() -> None:
    planned = Counter(event.what for plan in many() for event in plan.events)
    assert {kind: planned[kind] for kind in IN_CHAINS if planned[kind] <= 8} == {}


@pytest.mark.slow
def test_an_outage_of_hours_is_planned_for_a_few_worlds() -> None:
    planned = [sum(event.what == "outage" for event in plan.events) for plan in many()]
    assert set(planned) == {0, 1}
    assert 5 < sum(planned) < 30


@pytest.mark.slow
def test_each_action_of_a_customer_is_planned() -> None:
    planned = Counter(event.what for plan in many() for event in plan.events)
    assert all(planned[kind] > 500 for kind in ActionKind)


@pytest.mark.slow
def test_any_two_kinds_of_faults_that_any_world_may_have_meet_in_some_world() -> None:
    met = {
        (one, other)
        for plan in many()
        for kinds in [{event.what for event in plan.events} & OFTEN]
        for one in kinds
        for other in kinds
    }
    missing = {(one, other) for one in OFTEN for other in OFTEN if one < other and (one, other) not in met}
    assert missing == set()


@pytest.mark.slow
def test_some_worlds_have_no_fault() -> None:
    assert any(not any(event.what in FAULT_KINDS for event in plan.events) for plan in many())


def test_a_fault_hits_what_its_world_has_and_says_all_that_its_kind_needs() -> None:
    for plan in few():
        shape = WorldShape.of(plan.shape)
        for event in plan.events:
            if event.what in FAULT_KINDS:
                row = FAULTS[event.what]
                assert event.where in row.targets(parts_of(shape))
                assert event.parameters.keys() == row.parameters.keys()
                assert (event.for_s > 0) == (row.for_s is not None)
            else:
                assert event.what in ACTIONS


def test_customers_act_on_orders_that_they_have_placed_before() -> None:
    for plan in few():
        placed: dict[int, str] = {}
        for event in plan.events:
            if event.what == ActionKind.PLACE:
                assert event.whole("order") not in placed
                placed[event.whole("order")] = event.where
            elif event.what in ACTIONS:
                assert placed[event.whole("order")] == event.where
        added = [order for order in placed if order > 100]
        assert len(placed) - len(added) in (range(20, 61) if plan.seed % 10 == 0 else range(2, 21))
        assert len(added) in (range(9) if plan.seed % 10 == 7 else (0,))


def test_some_customers_forget_an_order_that_nobody_answered() -> None:
    placings = [event.parameters for plan in few() for event in plan.events if event.what == ActionKind.PLACE]
    assert {placing.get("tries") for placing in placings} == {None, 1, 2}


def test_only_a_placing_with_a_key_is_repeated() -> None:
    for plan in few():
        keys = {event.whole("order"): event.parameters["key"] for event in plan.events if event.what == ActionKind.PLACE}
        assert all(keys[event.whole("order")] for event in plan.events if event.what == ActionKind.PLACE_AGAIN)


def test_faults_are_over_when_the_plan_ends() -> None:
    assert all(event.ends_s <= plan.ends_s + 0.001 for plan in few() for event in plan.events)


def test_an_order_that_nobody_pays_expires_before_the_brokers_patience_ends() -> None:
    for plan in few():
        shape = WorldShape.of(plan.shape)
        patience_s = shape.check_immunity_s + shape.check_max * shape.check_interval_s
        assert shape.payment_deadline_s + shape.check_interval_s <= patience_s


def test_a_seed_has_one_plan_and_its_text_holds_it() -> None:
    for seed in range(50):
        assert plan_of(seed).written() == plan_of(seed).written()
        assert read_plan(plan_of(seed).written()) == plan_of(seed)


def test_seeds_have_different_plans() -> None:
    assert len({plan.with_events(plan.events).written() for plan in few()}) == len(few())


def test_a_shape_that_says_nothing_is_the_simplest() -> None:
    assert WorldShape.of({}).as_settings() == SIMPLEST


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        ({"borkers": 2}, "unknown setting borkers"),
        ({"brokers": "two"}, r"shape: Expected `int`, got `str` - at `\$.brokers`"),
        ({"brokers": 3}, "brokers must be between 1 and 2, not 3"),
        ({"order_services": 0}, "order_services must be between 1 and 3, not 0"),
        ({"max_tries": 17}, "max_tries must be between 1 and 16, not 17"),
    ],
)
def test_a_shape_that_no_world_has_is_refused(shape: dict[str, int | str], told: str) -> None:
    with pytest.raises(UnreadablePlan, match=told):
        WorldShape.of(shape)


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (PlannedEvent(3.0, "process.kill", "worker-2", 1.0), "process.kill at 3 s cannot hit worker-2"),
        (PlannedEvent(3.0, "network.cut", "orders-2>broker-a"), "network.cut at 3 s cannot hit orders-2>broker-a"),
        (PlannedEvent(3.0, "database.hang", "inventory-database", 1.0), "possible targets: orders-database, credits-database"),
        (PlannedEvent(3.0, "redis.hang", "worker-1", 1.0), "redis.hang at 3 s cannot hit worker-1; possible targets: redis"),
        (PlannedEvent(3.0, "redis.hnag", "redis", 1.0), "unknown event redis.hnag at 3 s"),
    ],
    ids=lambda value: value.what if isinstance(value, PlannedEvent) else "",
)
def test_a_fault_that_hits_what_its_world_lacks_is_refused(fault: PlannedEvent, told: str) -> None:
    with pytest.raises(UnreadablePlan, match=told):
        shape_for(Plan(1, {}, (fault,), 10.0))


def test_each_drawn_plan_fits_its_world() -> None:
    assert all(shape_for(plan).as_settings() == plan.shape for plan in few())
