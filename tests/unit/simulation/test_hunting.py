"""Tests the hunt for planted bugs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from lab.simulation.planted import found
from lab.simulation.planted.found import FoundBug, found_in
from lab.simulation.planted.hunting import SHRINKS_AFTER, hunt
from lab.simulation.planted.kept import HuntedWorld, KeptHunt, ShrunkBug
from lab.simulation.search.worlds import FoundBroken, WorldEnd
from rocketmq_broker.client.producer.send_result import SendStatus
from rocketmq_broker.client.transaction import transaction_decision
from rocketmq_broker.testing.simulation.plan import Plan, PlannedEvent

SLOW, NAMES = "slow-flush-counts-as-stored", ["op-message-first", "slow-flush-counts-as-stored"]
EVENTS = [PlannedEvent(float(number), "order.place", "ana", 0.0, {"order": number}) for number in range(1, 6)]


class SmallHunt:
    """A hunt whose worlds take half a second of processor time, with a record of its plays and reports."""

    def __init__(self, file: Path) -> None:
        self.kept = KeptHunt(file)
        self.played: list[int] = []
        self.left: list[tuple[int, int]] = []
        self.found: list[tuple[str | None, int]] = []
        self.shrunk: list[ShrunkBug] = []

    def run(self, names: Sequence[str], seeds: range) -> None:
        hunt(names, seeds, self.play, self.kept, tries=50, watcher=self)

    def play(self, plan: Plan | int) -> WorldEnd:
        """Plays a world. Seed 2 is always broken. Seeds 3 and 50 to 98 lose order 3 if a slow flush counts as success."""
        if isinstance(plan, int):
            self.played.append(plan)
            plan = Plan(plan, {}, tuple(EVENTS), 10.0)
        is_careless = transaction_decision.state_without_listener(SendStatus.FLUSH_DISK_TIMEOUT) is None
        orders = [event.whole("order") for event in plan.events]
        broken = []
        if plan.seed == 2:
            broken.append(FoundBroken("Kept.", "anyway"))
        elif is_careless and plan.seed in (3, *range(50, 99)) and 3 in orders:
            broken.append(FoundBroken("Kept.", f"order 3 of {len(orders)} is lost"))
        elif is_careless and 3 not in orders:
            broken.append(FoundBroken("Kept.", "nobody ordered"))
        return WorldEnd(plan, "", {}, 1.0, tuple(broken), cpu_s=0.5)

    def has_played(self, seed: int, left: Sequence[str]) -> None:
        self.left.append((seed, len(left)))

    def has_found(self, world: HuntedWorld) -> None:
        self.found.append((world.bug, world.seed))

    def has_shrunk(self, bug: ShrunkBug) -> None:
        self.shrunk.append(bug)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "planted" / "v1.jsonl"


def test_a_bug_is_found_by_the_first_world_that_breaks_a_promise_only_with_it(file: Path) -> None:
    small = SmallHunt(file)
    small.run(NAMES, range(1, 5))
    assert small.found == [(SLOW, 3)]
    assert small.left == [(1, 2), (3, 1), (4, 1)]


def test_a_found_bug_has_worlds_seconds_promise_and_the_events_that_are_left(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found, "FOUND", {"op-message-first": FoundBug(3, 3, "Kept.")})
    small = SmallHunt(file)
    small.run(NAMES, range(1, 5))
    assert found_in(small.kept, NAMES) == {
        SLOW: FoundBug(2, 2, "Kept.", 1.0, 1),
        "op-message-first": FoundBug(3, None, "more worlds are needed", 1.5),
    }


def test_a_bug_that_was_not_found_yet_keeps_what_is_known_of_it_until_as_many_worlds_were_played(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(found, "FOUND", {"op-message-first": FoundBug(4, 4, "Kept."), SLOW: FoundBug(99, 99, "Kept.")})
    small = SmallHunt(file)
    small.run(NAMES, range(1, 5))
    assert set(found_in(small.kept, NAMES)) == {SLOW}


def test_the_hunt_ends_when_each_bug_is_found(file: Path) -> None:
    small = SmallHunt(file)
    small.run([SLOW], range(3, 100))
    assert set(small.played) == {3}


def test_a_hunt_goes_on_where_the_last_one_stopped(file: Path) -> None:
    SmallHunt(file).run(NAMES, range(1, 3))
    file.write_bytes(file.read_bytes() + b'{"type":"world","bug":"slow-fl')
    later = SmallHunt(file)
    later.run(NAMES, range(1, 5))
    assert set(later.played) == {3, 4}
    assert found_in(KeptHunt(file), NAMES) == found_in(later.kept, NAMES)
    assert later.kept.worlds(SLOW) == [HuntedWorld(SLOW, 1, 0.5), HuntedWorld(SLOW, 3, 0.5, "Kept.")]


def test_a_hunt_of_no_worlds_tells_what_is_kept_and_plays_nothing(file: Path) -> None:
    SmallHunt(file).run(NAMES, range(1, 5))
    later = SmallHunt(file)
    later.run(NAMES, range(0))
    assert (later.played, later.shrunk) == ([], [])
    assert found_in(later.kept, NAMES)[SLOW].events == 1


def test_what_was_found_is_shrunk_before_the_hunt_ends(file: Path) -> None:
    small = SmallHunt(file)
    small.run(NAMES, range(3, 3 + SHRINKS_AFTER))
    assert [(bug.bug, bug.seed, bug.events) for bug in small.shrunk] == [(SLOW, 3, 1)]
    assert small.kept.shrunk(SLOW) == small.shrunk[0]
