"""A planned fault counts as fired once, and only after it has taken effect in a program."""

import pytest

from lab.simulation.action_kinds import ActionKind
from lab.simulation.shapes import WorldShape
from lab.simulation.world import play
from rocketmq_broker.testing.simulation.plan import Plan, PlannedEvent

SHAPE = WorldShape(check_interval_s=3.0, check_immunity_s=2.0)
NTH = {"nth": 2}
FAULTS = [
    PlannedEvent(5.0, "disk.full", "broker-a", 4.0),
    PlannedEvent(5.0, "disk.slow", "broker-a", 4.0, {"delay_s": 0.5}),
    PlannedEvent(5.0, "disk.fail_writes", "broker-a", 0.0, {"count": 2}),
    PlannedEvent(5.0, "disk.fail_syncs", "broker-a", 0.0, {"count": 2}),
    PlannedEvent(5.0, "database.refuse", "orders-database", 4.0, {"rate": 1.0}),
    PlannedEvent(5.0, "database.hang", "credits-database", 4.0),
    PlannedEvent(5.0, "database.lost_answer", "credits-database", 0.0, NTH),
    PlannedEvent(5.0, "database.locked", "credits-database", 4.0),
    PlannedEvent(5.0, "database.rule", "credits-database", 4.0, {**NTH, "about": "rows"}),
    PlannedEvent(5.0, "redis.lose_task", "redis", 0.0, NTH),
    PlannedEvent(5.0, "redis.away", "redis", 4.0),
    PlannedEvent(5.0, "redis.hang", "redis", 4.0),
    PlannedEvent(5.0, "worker.kill_child", "worker-1", 0.0, {**NTH, "when": "before"}),
    PlannedEvent(5.0, "worker.fail_order", "redis", 4.0, {**NTH, "when": "before", "how": "raises"}),
    PlannedEvent(5.0, "replica.old_rows", "orders-1", 30.0, {"age_s": 1.0}),
    PlannedEvent(0.0, "replica.promoted", "orders-1", 30.0, {"age_s": 2.0}),
    PlannedEvent(5.0, "worker.never_credit", "redis", 0.0, {**NTH, "when": "before", "how": "raises"}),
    PlannedEvent(5.0, "listener.fail", "credits-1", 4.0, {"how": "raises"}),
    PlannedEvent(5.0, "listener.fail", "credits-1", 4.0, {"how": "later"}),
]


def fired(*events: PlannedEvent) -> dict[str, int]:
    ended = play(Plan(1, SHAPE.as_settings(), (), 40.0).with_events(events))
    return {kind: count for kind, count in ended.fired.items() if count}


def order(number: int, at_s: float) -> PlannedEvent:
    placing = {"order": number, "items": [["pen", 1, 500]], "key": f"key-{number}", "pays_later": True}
    return PlannedEvent(at_s, ActionKind.PLACE, "ana", parameters=placing)


def paid(number: int, at_s: float) -> PlannedEvent:
    return PlannedEvent(at_s, ActionKind.PAY, "ana", parameters={"order": number})


def test_a_fault_that_nothing_meets_does_not_count() -> None:
    faults = [fault for fault in FAULTS if not fault.what.startswith("disk.")]
    assert fired(*faults) == {}
    assert fired(PlannedEvent(5.0, "disk.full", "broker-a", 0.001)) == {}
    assert fired(PlannedEvent(5.0, "process.freeze", "worker-1", 0.0001)) == {}
    assert fired(PlannedEvent(5.0, "clock.stop", "worker-1", 0.0001)) == {}


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.what for fault in FAULTS])
def test_a_fault_that_many_meet_counts_once(fault: PlannedEvent) -> None:
    orders = [order(number, 4.0 + number / 2) for number in range(8)]
    payments = [paid(number, 5.0 + number) for number in range(8)]
    assert fired(fault, *orders, *payments) == {fault.what: 1}


def test_clocks_and_processes_that_are_in_use_count() -> None:
    faults = [
        PlannedEvent(5.0, "clock.leap", "broker-a", 20.0, {"by_s": 30.0}),
        PlannedEvent(5.0, "clock.stop", "orders-1", 20.0),
        PlannedEvent(5.0, "clock.rate", "worker-1", 20.0, {"rate": 3.0}),
        PlannedEvent(30.0, "process.freeze", "broker-a", 8.0),
    ]
    assert fired(order(1, 6.0), paid(1, 7.0), *faults) == {fault.what: 1 for fault in faults}
