"""Tests that a broker on the simulated disk loses no acknowledged or delivered message, for all disk faults and crashes."""

from collections import Counter

from tests.component.testing.simulation.broker_on_a_disk import BrokenPromise, BrokerOnADisk

ROUNDS = 6


def test_nothing_acknowledged_or_shown_is_lost_and_nothing_is_shown_that_was_not_sent() -> None:
    fired: Counter[str] = Counter()
    acknowledged = 0
    for seed in range(8, 12):
        world = BrokerOnADisk(seed)
        world.play(ROUNDS)
        assert world.errors == []
        fired.update(world.fired)
        acknowledged += len(world.acknowledged)
    assert len(fired) >= 6
    assert acknowledged > 1000


def test_the_same_seed_gives_the_same_history() -> None:
    worlds = [BrokerOnADisk(seed) for seed in (1, 1, 2)]
    for world in worlds:
        world.play(2)
    first, again, other = (world.history.digest for world in worlds)
    assert first == again
    assert first != other


def test_a_disk_that_only_says_that_it_flushed_is_found_out() -> None:
    found = 0
    for seed in range(8):
        try:
            BrokerOnADisk(seed, lies=True).play(ROUNDS)
        except BrokenPromise:
            found += 1
    assert found >= 4
