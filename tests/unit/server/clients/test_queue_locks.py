"""Tests which client may consume a queue in order."""

import pytest

from rocketmq_broker.server.clients.queue_locks import LOCK_EXPIRES_MS, QueueLocks, TooManyLocks


def test_a_queue_is_locked_for_one_client_at_a_time() -> None:
    locks: QueueLocks[str] = QueueLocks()
    assert locks.lock("g", ["q0", "q1"], "one", 0) == ["q0", "q1"]
    assert locks.lock("g", ["q1", "q2"], "two", 1) == ["q2"]
    assert locks.lock("other", ["q1"], "two", 1) == ["q1"]


def test_a_lock_that_is_renewed_lasts_and_one_that_is_not_expires() -> None:
    locks: QueueLocks[str] = QueueLocks()
    locks.lock("g", ["q0", "q1"], "one", 0)
    locks.lock("g", ["q0"], "one", LOCK_EXPIRES_MS)
    assert locks.lock("g", ["q0", "q1"], "two", LOCK_EXPIRES_MS + 1) == ["q1"]


def test_only_its_holder_gives_a_lock_back() -> None:
    locks: QueueLocks[str] = QueueLocks()
    locks.lock("g", ["q0"], "one", 0)
    locks.unlock("g", ["q0"], "two")
    assert locks.lock("g", ["q0"], "two", 1) == []
    locks.unlock("g", ["q0", "never locked"], "one")
    assert locks.lock("g", ["q0"], "two", 1) == ["q0"]


def test_a_lock_that_expired_takes_no_memory() -> None:
    locks: QueueLocks[str] = QueueLocks()
    locks.lock("gone", ["q0", "q1"], "one", 0)
    locks.lock("g", ["q0"], "one", 0)
    locks.lock("g", ["q1"], "one", 1)
    assert list(locks.forget_expired(LOCK_EXPIRES_MS + 1))
    assert locks.count == 1
    assert locks.lock("g", ["q0", "q1"], "two", LOCK_EXPIRES_MS + 1) == ["q0"]


def test_locks_are_bounded_and_those_there_are_can_be_renewed() -> None:
    locks: QueueLocks[str] = QueueLocks(max_locks=1)  # and as many again for groups with few
    locks.lock("g", ["q0", "q1"], "one", 0)
    with pytest.raises(TooManyLocks, match="too many locked queues: 2 in all groups, limit 1"):
        locks.lock("made-up", ["q0"], "two", 0)
    assert locks.lock("g", ["q0", "q1"], "one", 1) == ["q0", "q1"]
    locks.unlock("g", ["q0"], "one")
    assert locks.lock("made-up", ["q0"], "two", 1) == ["q0"]


def test_one_group_can_neither_lock_all_queues_nor_keep_another_one_from_its_first() -> None:
    locks: QueueLocks[int] = QueueLocks()
    with pytest.raises(TooManyLocks, match="too many locked queues in one group: limit 50000"):
        locks.lock("greedy", range(50_001), "one", 0)
    for number in range(3):
        locks.lock(f"greedy-{number}", range(50_000), "one", 0)
    assert len(locks.lock("g", range(32), "two", 0)) == 32
    with pytest.raises(TooManyLocks, match="too many locked queues: "):
        locks.lock("g", [32], "two", 0)
