"""A planned fault counts as fired once, and only after it has taken effect in a program."""

from __future__ import annotations

import pytest

from lab.simulation.action_kinds import ActionKind
from lab.simulation.fault_kinds import FaultKind
from lab.simulation.shapes import WorldShape
from lab.simulation.world import play
from rocketmq_broker.testing.simulation.plan import Plan, PlannedEvent

SHAPE = WorldShape(check_interval_s=3.0, check_immunity_s=2.0)
NTH = {"nth": 2}
FAULTS = [
    PlannedEvent(5.0, FaultKind.DISK_FULL, "broker-a", 4.0),
    PlannedEvent(5.0, FaultKind.DISK_SLOW, "broker-a", 4.0, {"delay_s": 0.5}),
    PlannedEvent(5.0, FaultKind.DISK_FAIL_WRITES, "broker-a", 0.0, {"count": 2}),
    PlannedEvent(5.0, FaultKind.DISK_FAIL_SYNCS, "broker-a", 0.0, {"count": 2}),
    PlannedEvent(5.0, FaultKind.DATABASE_REFUSE, "orders-database", 4.0, {"rate": 1.0}),
    PlannedEvent(5.0, FaultKind.DATABASE_HANG, "credits-database", 4.0),
    PlannedEvent(5.0, FaultKind.DATABASE_LOST_ANSWER, "credits-database", 0.0, NTH),
    PlannedEvent(5.0, FaultKind.DATABASE_LOCKED, "credits-database", 4.0),
    PlannedEvent(5.0, FaultKind.DATABASE_RULE, "credits-database", 4.0, {**NTH, "about": "rows"}),
    PlannedEvent(5.0, FaultKind.REDIS_LOSE_TASK, "redis", 0.0, NTH),
    PlannedEvent(5.0, FaultKind.REDIS_AWAY, "redis", 4.0),
    PlannedEvent(5.0, FaultKind.REDIS_HANG, "redis", 4.0),
    PlannedEvent(5.0, FaultKind.WORKER_KILL_CHILD, "worker-1", 0.0, {**NTH, "when": "before"}),
    PlannedEvent(5.0, FaultKind.WORKER_FAIL_ORDER, "redis", 4.0, {**NTH, "when": "before", "how": "raises"}),
    PlannedEvent(5.0, FaultKind.REPLICA_OLD_ROWS, "orders-1", 30.0, {"age_s": 1.0}),
]


def fired(*events: PlannedEvent) -> dict[str, int]:
    return dict(play(Plan(1, SHAPE.as_settings(), (), 40.0).with_events(events)).fired)


def order(number: int, at_s: float) -> PlannedEvent:
    placing = {"order": number, "items": [["pen", 1, 500]], "key": f"key-{number}", "pays_later": True}
    return PlannedEvent(at_s, ActionKind.PLACE, "ana", parameters=placing)


def paid(number: int, at_s: float) -> PlannedEvent:
    return PlannedEvent(at_s, ActionKind.PAY, "ana", parameters={"order": number})


def test_a_fault_that_nothing_meets_does_not_count() -> None:
    faults = [fault for fault in FAULTS if not fault.what.startswith("disk.")]
    assert fired(*faults) == {}
    assert fired(PlannedEvent(5.0, FaultKind.DISK_FULL, "broker-a", 0.001)) == {}
    assert fired(PlannedEvent(5.0, FaultKind.PROCESS_FREEZE, "worker-1", 0.0001)) == {}
    assert fired(PlannedEvent(5.0, FaultKind.CLOCK_STOP, "worker-1", 0.0001)) == {}


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.what for fault in FAULTS])
def test_a_fault_that_many_meet_counts_once(fault: PlannedEvent) -> None:
    orders = [order(number, 4.0 + number / 2) for number in range(8)]
    payments = [paid(number, 5.0 + number) for number in range(8)]
    assert fired(fault, *orders, *payments) == {fault.what: 1}


def test_clocks_and_processes_that_are_in_use_count() -> None:
    faults = [
        PlannedEvent(5.0, FaultKind.CLOCK_LEAP, "broker-a", 20.0, {"by_s": 30.0}),
        PlannedEvent(5.0, FaultKind.CLOCK_STOP, "orders-1", 20.0),
        PlannedEvent(5.0, FaultKind.CLOCK_RATE, "worker-1", 20.0, {"rate": 3.0}),
        PlannedEvent(30.0, FaultKind.PROCESS_FREEZE, "broker-a", 8.0),
    ]
    assert fired(order(1, 6.0), paid(1, 7.0), *faults) == {fault.what: 1 for fault in faults}
