"""The committable offset of a process queue never passes an unacknowledged message."""

from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.client.pull.process_queue import ProcessQueue
from rocketmq_broker.world import World
from tests.unit.client.messages import QUEUE, message, offsets


def queue_with(*queue_offsets: int, begin: int = 0, next_offset: int | None = None) -> ProcessQueue:
    queue = ProcessQueue(QUEUE, begin, World())
    queue.put([message(offset) for offset in queue_offsets], queue_offsets[-1] + 1 if next_offset is None else next_offset)
    return queue


def test_a_fresh_queue_may_commit_where_it_began() -> None:
    assert ProcessQueue(QUEUE, 7, World()).committable_offset == 7


def test_a_gap_holds_the_offset_however_much_after_it_is_done() -> None:
    queue = queue_with(0, 1, 2, 3)
    queue.acknowledge([1, 2, 3])
    assert queue.committable_offset == 0
    queue.acknowledge([0])
    assert queue.committable_offset == 4


def test_messages_that_the_broker_filtered_out_are_passed_when_all_others_are_done() -> None:
    queue = queue_with(3, next_offset=900)
    assert queue.committable_offset == 3
    queue.acknowledge([3])
    assert queue.committable_offset == 900


def test_an_empty_pull_moves_the_offset_only_when_nothing_is_in_flight() -> None:
    queue = queue_with(0, 1)
    queue.put([], 50)
    assert queue.committable_offset == 0
    queue.acknowledge([0, 1])
    assert queue.committable_offset == 50


def test_what_was_pulled_before_is_not_taken_twice() -> None:
    queue = queue_with(0, 1)
    assert offsets(queue.put([message(1), message(2)], 3)) == [2]
    assert queue.message_count == 3


def test_acknowledging_twice_or_the_unknown_changes_nothing() -> None:
    queue = queue_with(0, 1)
    queue.acknowledge([0])
    queue.acknowledge([0, 99])
    assert (queue.message_count, queue.committable_offset, queue.message_bytes) == (1, 1, 4)


def test_it_is_full_by_count_by_size_and_by_span() -> None:
    limits = {"max_count": 2, "max_bytes": 100, "max_span": 10}
    assert not queue_with(0, 1).is_full(**limits)
    assert queue_with(0, 1, 2).is_full(**limits)
    assert queue_with(0, 11).is_full(**limits)
    assert not queue_with(0, 11).is_full(max_count=2, max_bytes=100, max_span=None)
    large = ProcessQueue(QUEUE, 0, World())
    large.put([message(0, body=bytes(101))], 1)
    assert large.is_full(**limits)


@given(st.lists(st.integers(0, 30), unique=True), st.data())
def test_the_committable_offset_is_that_of_the_oldest_message_not_acknowledged(stored: list[int], data: st.DataObject) -> None:
    stored.sort()
    queue = ProcessQueue(QUEUE, 0, World())
    queue.put([message(offset) for offset in stored], 31)
    left = set(stored)
    for offset in data.draw(st.permutations(stored)):
        assert queue.committable_offset == min(left)
        queue.acknowledge([offset])
        left.discard(offset)
    assert (queue.committable_offset, queue.message_count, queue.message_bytes, queue.span) == (31, 0, 0, 0)
