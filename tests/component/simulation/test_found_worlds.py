"""Worlds that once broke a promise, told by what goes wrong in them."""

from dataclasses import replace

from rocketmq_broker.testing.simulation.plan import Plan, PlannedEvent
from simulation.action_kinds import ActionKind
from simulation.fault_kinds import FaultKind
from simulation.plans import plan_of
from simulation.shapes import WorldShape
from simulation.world import play

SHAPE = replace(WorldShape(), brokers=1, order_services=1, credit_services=1, workers=1, flush_sync=True)


def plan_with(*faults: PlannedEvent) -> Plan:
    """Returns a plan of the orders of a drawn world, with these faults only."""
    orders = [event for event in plan_of(1).events if event.what == ActionKind.PLACE]
    return Plan(1, SHAPE.as_settings(), (), 300.0).with_events([*orders, *faults])


def test_a_broker_whose_disk_broke_its_store_ends_and_is_started_again() -> None:
    ended = play(plan_with(PlannedEvent(30.0, FaultKind.DISK_FAIL_SYNCS, "broker-a", 0.0, {"count": 8})))
    starts = [it for it in ended.happenings if it.kind == "start" and it.text == "broker-a starts"]
    assert len(starts) > 1
    assert ended.violations == ()
