"""With a broker that behaves like Apache's, two copies of a half message are delivered, and the ledger counts them once."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from lab.simulation.judges.violation import Promise
from lab.simulation.shapes import WorldShape
from lab.simulation.world import play
from rocketmq_broker.testing.exploring.search.worlds import WorldEnd
from rocketmq_broker.testing.simulation.plan import Plan, PlannedEvent, UnreadablePlan, read_plan

PLANS = Path(__file__).parents[3] / "lab" / "simulation" / "plans" / "apache"
TWICE = "the message is delivered a second time, as Apache's broker does"

each_plan = pytest.mark.parametrize("name", ["second_copy", "batched_op_message"])


def plan(name: str) -> Plan:
    return read_plan((PLANS / f"{name}.json").read_bytes())


def like(release: int, kept: Plan) -> Plan:
    return replace(kept, shape={**kept.shape, "as_apache": release})


def second_deliveries(played: WorldEnd) -> int:
    return sum(happening.text == TWICE for happening in played.happenings)


@each_plan
def test_a_message_is_delivered_twice_and_only_the_reconciliation_complains(name: str) -> None:
    played = play(plan(name))
    assert second_deliveries(played) >= 1
    assert {broken.promise for broken in played.broken} == {Promise.BOOKS_AGREE}
    assert {broken.text.partition(":")[0] for broken in played.broken} == {"doubled_delivery"}


@each_plan
def test_the_same_world_with_this_broker_keeps_every_promise(name: str) -> None:
    played = play(like(0, plan(name)))
    assert (second_deliveries(played), played.broken) == (0, ())


def test_a_check_soon_after_the_commit_finds_no_op_message_in_release_5_only() -> None:
    assert second_deliveries(play(plan("batched_op_message"))) == 1
    assert second_deliveries(play(like(4, plan("batched_op_message")))) == 0


def test_a_broker_that_is_killed_forgets_op_messages_that_were_not_written_and_checks_again() -> None:
    kept = plan("batched_op_message")
    kill = PlannedEvent(1.5, "process.kill", "broker-a", 6.0)
    played = play(replace(kept, shape={**kept.shape, "check_immunity_s": 12.0}, ends_s=40.0).with_events([*kept.events, kill]))
    assert second_deliveries(played) == 1


@each_plan
def test_such_a_world_has_the_same_digest_each_time(name: str) -> None:
    assert play(plan(name)).digest == play(plan(name)).digest


def test_no_other_release_can_be_asked_for() -> None:
    with pytest.raises(UnreadablePlan, match="as_apache must be 0, 4 or 5, not 3"):
        WorldShape.of({"as_apache": 3})
