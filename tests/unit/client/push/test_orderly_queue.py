"""An orderly queue delivers one batch at a time, and delivers a failed batch again before the next batch."""

from rocketmq_broker.client.push.orderly_queue import OrderlyQueue, split_at_first_postponed
from tests.unit.client.messages import message, offsets


def test_one_batch_is_in_hand_at_a_time() -> None:
    queue = OrderlyQueue()
    queue.add([message(0), message(1), message(2)])
    assert offsets(queue.take(2)) == [0, 1]
    assert queue.take(2) == []
    queue.is_busy = False
    assert offsets(queue.take(2)) == [2]


def test_an_empty_queue_is_not_busy() -> None:
    queue = OrderlyQueue()
    assert queue.take(1) == []
    assert not queue.is_busy


def test_what_failed_comes_first_again_with_one_attempt_more() -> None:
    queue = OrderlyQueue()
    queue.add([message(0), message(1), message(2)])
    queue.put_back(queue.take(2))
    queue.is_busy = False
    again = queue.take(3)
    assert [(each.queue_offset, each.reconsume_times) for each in again] == [(0, 1), (1, 1), (2, 0)]


def test_what_follows_a_postponed_message_is_postponed_as_well() -> None:
    batch = [message(0), message(1), message(2)]
    consumed, repeated = split_at_first_postponed(batch, [batch[1]])
    assert (offsets(consumed), offsets(repeated)) == ([0], [1, 2])
    assert split_at_first_postponed(batch, []) == (batch, [])
