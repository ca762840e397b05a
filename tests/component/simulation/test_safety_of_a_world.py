"""Safety over all frames and database commits of a world that goes right, and of one whose services are made to go wrong."""

from __future__ import annotations

import asyncio
from pathlib import Path

from simulation.judges.safety import SafetyJudge
from simulation.judges.violation import Promise
from tests.component.simulation.small_world import Tap, databases, play


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
