"""Chains of faults: the times and targets of their steps, the orders beside them, and the keys of customers."""

from functools import cache
from random import Random

import pytest

from lab.simulation.action_kinds import ActionKind
from lab.simulation.plans import plan_of
from lab.simulation.plans.chains import CHAINS, ChainStep, FaultChain, chain_of, with_common_keys
from lab.simulation.plans.fault_table import FAULTS, parts_of
from lab.simulation.shapes import WorldShape
from rocketmq_broker.testing.simulation.plan import Plan, PlannedEvent

PARTS = parts_of(WorldShape(brokers=2, credit_services=3))


@cache
def chained() -> list[Plan]:
    return [plan_of(seed) for seed in range(7, 1000, 10)]


def placing(who: str, order: int, key: str | None, at_s: float = 10.0) -> PlannedEvent:
    return PlannedEvent(at_s, ActionKind.PLACE, who, parameters={"order": order, "items": [], "key": key})


def test_a_seed_has_a_chain_if_it_ends_with_seven() -> None:
    assert [seed for seed in range(60) if chain_of(seed) is not None] == [7, 17, 27, 37, 47, 57]


def test_each_chain_is_drawn_at_least_five_times_in_a_thousand_seeds() -> None:
    drawn = [chain_of(plan.seed) for plan in chained()]
    assert [name for name, chain in CHAINS.items() if drawn.count(chain) < 5] == []


def test_a_chain_has_its_steps_in_their_order_and_no_other_fault() -> None:
    for plan in chained():
        chain = chain_of(plan.seed)
        assert chain is not None
        faults = [event.what for event in plan.events if event.what in FAULTS]
        assert sorted(faults) == sorted(step.what for step in chain.steps)


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_a_chain_changes_settings_and_parameters_that_exist(chain: FaultChain) -> None:
    assert WorldShape.of(chain.shape_from(WorldShape(), Random(1)).as_settings())
    for step in chain.steps:
        assert step.parameters.keys() <= FAULTS[step.what].parameters.keys()
        assert step.after_order <= chain.orders


def test_a_step_begins_after_the_step_before_it_and_hits_the_same_target() -> None:
    chain = FaultChain(
        (
            ChainStep("disk.slow", (0.0, 0.0)),
            ChainStep("machine.power", (3.0, 3.0), (1.0, 1.0)),
            ChainStep("listener.fail", (0.5, 0.5), hits="credits"),
        )
    )
    for seed in range(20):
        slow, power, listener = chain.events(Random(seed), PARTS, [placing("ana", 1, None)])
        assert power.where == slow.where
        assert (power.at_s - slow.at_s, power.for_s) == (pytest.approx(3.0, abs=0.002), 1.0)
        assert listener.at_s - power.at_s == pytest.approx(0.5, abs=0.002)
        assert listener.where in PARTS["credits"]


def test_a_step_can_follow_an_order_that_the_chain_adds() -> None:
    step = ChainStep("process.kill", (1.0, 1.0), hits="brokers", after_order=2)
    chain = FaultChain((step,), orders=3, first_order_s=(5.0, 5.0), orders_every_s=(2.0, 2.0), paid_later=1.0, paid_within_s=4.0)
    fault, *events = chain.events(Random(1), PARTS, [placing("ana", 1, None)])
    placed = {event.whole("order"): event.at_s for event in events if event.what == ActionKind.PLACE}
    paid = {event.whole("order"): event.at_s for event in events if event.what == ActionKind.PAY}
    assert [*placed] == [*paid] == [101, 102, 103]
    assert [placed[102] - placed[101], placed[103] - placed[102]] == [pytest.approx(2.0, abs=0.002)] * 2
    assert all(0.4 < paid[order] - placed[order] < 4.1 for order in placed)
    assert fault.at_s - placed[102] == pytest.approx(1.0, abs=0.002)


def test_customers_use_the_keys_of_others_for_their_own_orders() -> None:
    actions = [
        placing("ana", 1, "ana-1"),
        placing("ben", 2, "ben-2"),
        placing("ben", 3, None),
        PlannedEvent(11.0, ActionKind.PAY, "ben", parameters={"order": 2}),
        placing("ben", 4, "ben-4"),
    ]
    common = list(with_common_keys(actions))
    assert [event.parameters.get("key") for event in common] == ["order-1", "order-1", None, None, "order-2"]
    assert [(event.what, event.where, event.parameters["order"]) for event in common] == [
        (event.what, event.where, event.parameters["order"]) for event in actions
    ]
