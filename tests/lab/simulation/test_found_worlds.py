"""Worlds that once broke a promise. Each test is named after the failure."""

from collections import Counter
from dataclasses import replace

from lab.simulation.action_kinds import ActionKind
from lab.simulation.shapes import WorldShape
from lab.simulation.world import play
from rocketmq_broker.testing.simulation.plan import Plan, PlannedEvent

SHAPE = replace(WorldShape(), brokers=1, order_services=1, credit_services=1, workers=1, flush_sync=True)


def plan_with(*faults: PlannedEvent, shape: WorldShape = SHAPE) -> Plan:
    """Returns a plan of forty orders within 200 s, with these faults only."""
    orders = [
        PlannedEvent(
            5.0 * number, ActionKind.PLACE, ("ana", "ben", "chi")[number % 3], 0.0,
            {"order": number, "items": [["pen", 1, 100 * number]], "key": f"key-{number}", "pays_later": False},
        )
        for number in range(1, 41)
    ]  # fmt: skip
    return Plan(1, shape.as_settings(), (), 300.0).with_events([*orders, *faults])


def test_a_broker_whose_disk_broke_its_store_ends_and_is_started_again() -> None:
    ended = play(plan_with(PlannedEvent(30.0, "disk.fail_syncs", "broker-a", 0.0, {"count": 8})))
    starts = [it for it in ended.happenings if it.kind == "start" and it.text == "broker-a starts"]
    assert len(starts) > 1
    assert ended.broken == ()


def test_a_task_that_its_order_and_its_database_make_fail_leaves_no_error_behind() -> None:
    ended = play(
        plan_with(
            PlannedEvent(1.0, "worker.fail_order", "redis", 60.0, {"nth": 1, "when": "after", "how": "raises"}),
            PlannedEvent(20.0, "database.refuse", "credits-database", 40.0, {"rate": 1.0}),
        )
    )
    assert Counter(ended.fired) == Counter({"worker.fail_order": 1, "database.refuse": 1})
    assert ended.broken == ()


def test_locks_of_a_database_that_overlap_end_with_the_last_one() -> None:
    locks = [PlannedEvent(at_s, "database.locked", "credits-database", 40.0 - at_s) for at_s in (20.0, 20.5, 21.0)]
    ended = play(plan_with(*locks))
    assert Counter(ended.fired) == Counter({"database.locked": 3})
    assert ended.broken == ()


def test_clocks_and_deaths_at_one_machine_may_overlap() -> None:
    ended = play(
        plan_with(
            PlannedEvent(20.0, "clock.leap", "broker-a", 60.0, {"by_s": 600.0}),
            PlannedEvent(25.0, "clock.stop", "broker-a", 20.0),
            PlannedEvent(30.0, "clock.rate", "broker-a", 60.0, {"rate": 5.0}),
            PlannedEvent(40.0, "process.kill_at_disk", "broker-a", 1.0, {"nth": 40}),
            PlannedEvent(41.0, "process.kill_at_disk", "broker-a", 1.0, {"nth": 20}),
        )
    )
    assert Counter(ended.fired) == Counter(
        {
            "clock.leap": 1,
            "clock.stop": 1,
            "clock.rate": 1,
            "process.kill_at_disk": 2,
        }
    )
    assert ended.broken == ()


def test_a_broker_that_ends_closes_its_connections_in_the_same_order_each_time() -> None:
    plan = plan_with(PlannedEvent(30.0, "disk.fail_syncs", "broker-a", 0.0, {"count": 8}))
    assert len({play(plan).digest for _ in range(3)}) == 1


def test_a_death_after_a_statement_that_outlasts_the_faults_does_not_come() -> None:
    """The worker is not killed after a statement that locks and a hanging database delay until the faults are over."""
    placing = {"order": 3, "items": [["ink", 2, 2600]], "key": "dan-3", "pays_later": False}
    events = [
        PlannedEvent(1.879, "database.locked", "credits-database", 30.0),
        PlannedEvent(28.0, ActionKind.PLACE, "dan", 0.0, placing),
        PlannedEvent(28.2, "process.kill_at_database", "worker-1", 0.0, {"nth": 1, "when": "after"}),
        PlannedEvent(29.921, "database.hang", "credits-database", 16.567),
    ]
    played = play(Plan(2631, WorldShape().as_settings(), tuple(events), 46.488))
    assert played.fired["process.kill_at_database"] == 0
    assert played.broken == ()


def test_a_topic_whose_settings_the_disk_refused_once_is_there_after_the_broker_died() -> None:
    place = {"order": 4, "items": [["lamp", 1, 4600]], "key": "dan-4", "pays_later": False}
    events = (
        PlannedEvent(0.0, ActionKind.PLACE, "dan", 0.0, place),
        PlannedEvent(0.1, ActionKind.CANCEL, "dan", 0.0, {"order": 4}),
        PlannedEvent(0.1, "disk.fail_syncs", "broker-a", 0.0, {"count": 1}),
        PlannedEvent(0.3, "process.kill_at_disk", "broker-a", 0.0, {"nth": 1}),
    )
    ended = play(Plan(516, SHAPE.as_settings(), (), 1.3).with_events(events))
    assert Counter(ended.fired) == Counter({"disk.fail_syncs": 1, "process.kill_at_disk": 1})
    assert ended.broken == ()
