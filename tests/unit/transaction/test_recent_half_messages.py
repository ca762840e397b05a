from rocketmq_broker.message.inner_message import InnerMessage
from rocketmq_broker.transaction.recent_half_messages import RecentHalfMessages


def half(body: bytes = b"x" * 10) -> InnerMessage:
    return InnerMessage(b"half", 0, body, b"", 0, 0, 0, bytes(8))


def test_a_half_message_is_taken_once() -> None:
    recent = RecentHalfMessages()
    kept = half()
    recent.keep(7, 0, kept)
    assert recent.take(7, 0) is kept
    assert recent.take(7, 0) is None


def test_the_oldest_make_room() -> None:
    recent = RecentHalfMessages(max_bytes=25)
    for offset in (1, 2, 3):
        recent.keep(offset, 0, half())
    assert recent.take(1, 0) is None
    assert recent.take(2, 0) is not None
    assert recent.take(3, 0) is not None


def test_what_was_taken_leaves_its_room_to_others() -> None:
    recent = RecentHalfMessages(max_bytes=25)
    for offset in range(10):
        recent.keep(offset, 0, half())
        recent.take(offset, 0)
    recent.keep(10, 0, half())
    recent.keep(11, 0, half())
    assert recent.take(10, 0) is not None


def test_one_that_is_larger_than_all_the_room_is_not_kept() -> None:
    recent = RecentHalfMessages(max_bytes=5)
    recent.keep(1, 0, half())
    assert recent.take(1, 0) is None


def test_another_message_at_the_same_offset_replaces_the_first() -> None:
    recent = RecentHalfMessages(max_bytes=25)
    for body in (b"a" * 10, b"b" * 10, b"c" * 10):
        recent.keep(1, 0, half(body))
    recent.keep(2, 0, half())
    kept = recent.take(1, 0)
    assert kept is not None
    assert kept.body == b"c" * 10
    assert recent.take(2, 0) is not None


def test_nothing_is_left_after_clearing() -> None:
    recent = RecentHalfMessages()
    recent.keep(1, 0, half())
    recent.clear()
    assert recent.take(1, 0) is None


def test_a_half_message_with_another_queue_offset_is_not_the_one_that_was_kept() -> None:
    recent = RecentHalfMessages()
    recent.keep(1, 0, half())
    assert recent.take(1, 5) is None
