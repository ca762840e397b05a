"""Tests when hidden messages become visible again."""

from rocketmq_broker.server.popping.hidden_messages import CheckPoint, HiddenMessages
from rocketmq_broker.server.popping.pop_log import GroupQueue, PopEntry

QUEUE = GroupQueue("credits", "orders", 0)


def popped(*offsets: int, at_ms: int = 0, invisible_ms: int = 100, log_offset: int = 0) -> CheckPoint:
    return CheckPoint(PopEntry(*QUEUE, offsets[0], offsets[-1] + 1, list(offsets), at_ms, invisible_ms), log_offset)


def test_a_check_point_is_due_when_its_invisible_time_ends() -> None:
    hidden = HiddenMessages()
    hidden.hide(first := popped(0, 1))
    hidden.hide(popped(2, at_ms=50, log_offset=1))
    assert hidden.next_due_ms() == 100
    assert hidden.take_due(99) is None
    assert hidden.take_due(100) is first
    assert hidden.next_due_ms() == 150
    assert (hidden.count, list(hidden.counts())) == (3, [(QUEUE, 3)])


def test_a_check_point_whose_messages_are_all_shown_is_not_due() -> None:
    hidden = HiddenMessages()
    hidden.hide(popped(0, 1))
    for offset in 0, 1:
        hidden.put(QUEUE, offset, None)
    assert hidden.take_due(100) is None
    assert (hidden.count, hidden.live(), hidden.next_due_ms()) == (0, [], None)


def test_a_message_that_is_hidden_again_belongs_to_the_later_check_point() -> None:
    hidden = HiddenMessages()
    hidden.hide(first := popped(0, 1))
    hidden.hide(later := popped(1, at_ms=90, log_offset=1))
    assert [offset for offset, _ in hidden.held_by(first)] == [0]
    assert [offset for offset, _ in hidden.held_by(later)] == [1]
    assert hidden.live() == [first, later]


def test_a_change_can_be_undone() -> None:
    hidden = HiddenMessages()
    hidden.hide(first := popped(0, 1))
    before = hidden.hide(popped(1, at_ms=90, log_offset=1))
    for offset, entry in before.items():
        hidden.put(QUEUE, offset, entry)
    assert [offset for offset, _ in hidden.held_by(first)] == [0, 1]
    assert hidden.live() == [first]


def test_a_leap_of_the_clock_changes_no_wait() -> None:
    hidden = HiddenMessages()
    hidden.hide(check_point := popped(0))
    hidden.shift(1_000_000)
    assert hidden.take_due(1_000_099) is None
    assert hidden.take_due(1_000_100) is check_point
    assert hidden.of(QUEUE)[0].visible_ms == 1_000_100


def test_check_points_that_are_settled_soon_take_no_memory_until_their_time() -> None:
    hidden = HiddenMessages()
    for offset in range(10_000):
        hidden.hide(popped(offset, invisible_ms=1_000_000, log_offset=offset))
        hidden.put(QUEUE, offset, None)
    assert len(hidden._due) < 2_000
