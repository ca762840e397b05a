"""The hunt for planted bugs."""

from __future__ import annotations

from rocketmq_broker.client.producer.send_result import SendStatus
from rocketmq_broker.client.transaction import transaction_decision
from simulation.planted.hunting import HuntedBug, hunt

SLOW, NAMES = "slow-flush-counts-as-stored", ["op-message-first", "slow-flush-counts-as-stored"]


def breaks_with_a_slow_flush(seed: int) -> str | None:
    """The third world has a slow flush; the second one is broken anyway."""
    is_careless = transaction_decision.state_without_listener(SendStatus.FLUSH_DISK_TIMEOUT) is None
    return "kept" if seed == 2 or (seed == 3 and is_careless) else None


def test_a_bug_is_found_by_the_first_world_that_breaks_a_promise_only_with_it() -> None:
    assert list(hunt(NAMES, range(1, 9), breaks_with_a_slow_flush)) == [HuntedBug(SLOW, 2, 3, "kept")]


def test_the_hunt_ends_when_each_bug_is_found() -> None:
    played: list[int] = []

    def always_with_the_bug(seed: int) -> str | None:
        played.append(seed)
        return breaks_with_a_slow_flush(3)

    assert [bug.worlds for bug in hunt([SLOW], range(100), always_with_the_bug)] == [1]
    assert set(played) == {0}
