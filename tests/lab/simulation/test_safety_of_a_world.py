"""Tests safety over all frames and database commits of a correct world, and of a world whose services misbehave."""

import asyncio
from pathlib import Path

from lab.simulation.judges.safety import SafetyJudge
from lab.simulation.judges.violation import Promise
from tests.lab.simulation.small_world import Tap, Wrong, databases, play


def test_a_world_that_goes_right_breaks_no_promise(tmp_path: Path) -> None:
    safety = SafetyJudge()
    with databases(tmp_path) as world:
        tap = Tap(safety, world)
        asyncio.run(play(world, tmp_path, tap=tap))
        records = world.read().stores["broker-a"].records
    assert tap.violations == []
    assert safety.after_recovery("broker-a", records) == []
    lost = safety.after_recovery("broker-a", records[:3])
    assert {one.promise for one in lost} == {Promise.ACKNOWLEDGED_IS_KEPT}
    assert len(lost) >= 6


def test_a_consumer_that_acknowledges_what_it_did_not_do_is_found_by_its_offset(tmp_path: Path) -> None:
    with databases(tmp_path) as world:
        tap = Tap(SafetyJudge(), world)
        asyncio.run(play(world, tmp_path, tap=tap, wrong=Wrong(forgets={"bob"})))
        assert broken(tap) == {Promise.OFFSET_BEHIND_WORK}
        (violation,) = tap.violations
        assert world.order_id("bob") in violation.keys


def test_a_listener_that_answers_without_asking_its_database_is_found_by_its_decision(tmp_path: Path) -> None:
    with databases(tmp_path) as world:
        tap = Tap(SafetyJudge(), world)
        asyncio.run(play(world, tmp_path, tap=tap, wrong=Wrong(says_commit=True)))
        assert Promise.ONE_OUTCOME in broken(tap)
        assert tap.violations[0].text == "order_service told the broker COMMIT, and the order database says PENDING"


def broken(tap: Tap) -> set[Promise]:
    return {Promise(one.promise) for one in tap.violations}
