"""Batches of waiting messages are formed when a call begins, and are never larger than requested."""

from rocketmq_broker.client.push.concurrent_consumption import WaitingMessages
from tests.unit.client.messages import message, offsets


def test_messages_that_come_while_a_call_waits_join_it() -> None:
    waiting = WaitingMessages(batch_size=3)
    assert [waiting.add([message(offset)]) for offset in range(3)] == [1, 0, 0]
    assert offsets(waiting.take()) == [0, 1, 2]


def test_a_full_call_is_followed_by_another() -> None:
    waiting = WaitingMessages(batch_size=3)
    assert waiting.add([message(offset) for offset in range(7)]) == 3
    assert waiting.add([message(7), message(8)]) == 0
    assert waiting.add([message(9)]) == 1
    assert [offsets(waiting.take()) for _ in range(4)] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]


def test_a_call_that_has_begun_gets_no_more() -> None:
    waiting = WaitingMessages(batch_size=3)
    assert waiting.add([message(0)]) == 1
    assert offsets(waiting.take()) == [0]
    assert waiting.add([message(1)]) == 1
    assert offsets(waiting.take()) == [1]


def test_each_message_has_a_call_of_its_own_where_batches_are_of_one() -> None:
    waiting = WaitingMessages(batch_size=1)
    assert waiting.add([message(0), message(1)]) == 2
    assert [offsets(waiting.take()), offsets(waiting.take())] == [[0], [1]]
