"""Tests of the race with many seeds and random faults.

A search finds a fault of each unsafe approach. rocketmq-broker's approach loses nothing with the same seeds.
"""

import pytest

from rocketmq_broker.testing.exploring import ExploredWorld, explore
from rocketmq_broker.testing.exploring.drawing import REQUEST
from tutorials.race.entries import find_way
from tutorials.race.searching.__main__ import table
from tutorials.race.searching.finding import Anomaly, FoundAnomaly, SearchedWay, search_here
from tutorials.race.searching.world import race
from tutorials.race.ways import WAYS

SEEDS = range(1, 13)


def anomalies(searched: SearchedWay) -> set[Anomaly]:
    return {found.anomaly for found in searched.anomalies}


@pytest.mark.parametrize(
    ("way", "anomaly"),
    [
        ("send-then-commit", Anomaly.PHANTOM),
        ("commit-then-send", Anomaly.MISSING),
        ("send-inside", Anomaly.PHANTOM),
        ("call-in-line", Anomaly.PHANTOM),
        ("celery-delay", Anomaly.MISSING),
        ("state-in-memory", Anomaly.PHANTOM),
        ("without-barrier", Anomaly.TWO_OUTCOMES),
    ],
)
def test_a_way_that_loses_is_found_within_a_dozen_worlds(way: str, anomaly: Anomaly) -> None:
    assert anomaly in anomalies(search_here(find_way(WAYS, way), SEEDS, tries=1))


@pytest.mark.parametrize("way", ["outbox-polled", "outbox-notified", "ask-before-credit", "with-barrier"])
def test_a_way_that_holds_loses_and_invents_nothing_in_the_same_worlds(way: str) -> None:
    @explore(seeds=len(SEEDS))
    def holds(world: ExploredWorld) -> None:
        verdict = race(find_way(WAYS, way), world)
        assert (verdict.missing, verdict.phantom) == (0, 0)

    holds()


def test_the_faults_that_are_enough_are_few_and_do_it_alone() -> None:
    way = find_way(WAYS, "celery-delay")
    found = next(found for found in search_here(way, SEEDS).anomalies if found.anomaly is Anomaly.MISSING)
    assert len(found.enough) == 1


def test_the_same_plan_gives_the_same_verdict_and_a_world_without_faults_holds() -> None:
    way, first = find_way(WAYS, "commit-then-send"), ExploredWorld(2)
    verdict = race(way, first)
    first.end()
    assert verdict.missing
    again = ExploredWorld(2, first.plan)
    assert race(way, again) == verdict
    again.end()
    calm = ExploredWorld(2, first.plan.with_events(event for event in first.plan.events if event.what == REQUEST))
    found = race(way, calm)
    calm.end()
    assert (found.stored, found.missing, found.phantom, found.doubled) == (20, 0, 0, 0)


def test_the_table_says_what_was_found_and_what_never_was() -> None:
    found = FoundAnomaly(Anomaly.MISSING, 4, 5, ("process.kill redis",))
    told = table([SearchedWay("celery-delay", 20, (found,))])
    assert "| Celery delay() after commit | 20 | seed 4; 25 %; `process.kill redis` | never | never | never |" in told
