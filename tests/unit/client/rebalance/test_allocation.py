"""Every queue is assigned to exactly one member, in the same way as by Apache's clients of the group."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.message import MessageQueue
from rocketmq_broker.protocol.allocation import allocate_averagely


def queues(count: int) -> list[MessageQueue]:
    return [MessageQueue("t", "b", number) for number in range(count)]


@given(st.integers(0, 40), st.integers(1, 12))
def test_every_queue_has_exactly_one_owner_and_shares_differ_by_one_at_most(queue_count: int, client_count: int) -> None:
    clients = [f"c{number:02}" for number in range(client_count)]
    shares = [allocate_averagely(queues(queue_count), clients, client) for client in clients]
    assert [queue for share in shares for queue in share] == queues(queue_count)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize(
    ("client", "queue_ids"),
    [("a", [0, 1, 2]), ("b", [3, 4, 5]), ("c", [6, 7])],
)
def test_the_remainder_goes_to_the_first_members_in_consecutive_queues(client: str, queue_ids: list[int]) -> None:
    assert [queue.queue_id for queue in allocate_averagely(queues(8), ["c", "a", "b"], client)] == queue_ids


def test_more_members_than_queues_leave_the_last_ones_idle() -> None:
    assert [len(allocate_averagely(queues(2), "abc", client)) for client in "abc"] == [1, 1, 0]


def test_who_is_not_listed_gets_nothing() -> None:
    assert allocate_averagely(queues(4), ["a"], "stranger") == []


def test_a_member_listed_twice_counts_once() -> None:
    assert len(allocate_averagely(queues(4), ["a", "a", "b"], "a")) == 2
