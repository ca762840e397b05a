from broker.transaction.half_message import HalfMessage
from broker.transaction.recent_half_messages import RecentHalfMessages


def half(offset: int, body: bytes = b"x" * 10) -> HalfMessage:
    return HalfMessage(b"half", 0, offset, 0, 0, 0, bytes(8), 0, bytes(8), 0, 0, 0, body, b"")


def test_a_half_message_is_taken_once() -> None:
    recent = RecentHalfMessages()
    recent.keep(half(7))
    assert recent.take(7) == half(7)
    assert recent.take(7) is None


def test_the_oldest_make_room() -> None:
    recent = RecentHalfMessages(max_bytes=25)
    for offset in (1, 2, 3):
        recent.keep(half(offset))
    assert recent.take(1) is None
    assert recent.take(2) == half(2)
    assert recent.take(3) == half(3)


def test_what_was_taken_leaves_its_room_to_others() -> None:
    recent = RecentHalfMessages(max_bytes=25)
    for offset in range(10):
        recent.keep(half(offset))
        recent.take(offset)
    recent.keep(half(10))
    recent.keep(half(11))
    assert recent.take(10) is not None


def test_one_that_is_larger_than_all_the_room_is_not_kept() -> None:
    recent = RecentHalfMessages(max_bytes=5)
    recent.keep(half(1))
    assert recent.take(1) is None


def test_another_message_at_the_same_offset_replaces_the_first() -> None:
    recent = RecentHalfMessages(max_bytes=25)
    for body in (b"a" * 10, b"b" * 10, b"c" * 10):
        recent.keep(half(1, body))
    recent.keep(half(2))
    assert recent.take(1) == half(1, b"c" * 10)
    assert recent.take(2) is not None


def test_nothing_is_left_after_clearing() -> None:
    recent = RecentHalfMessages()
    recent.keep(half(1))
    recent.clear()
    assert recent.take(1) is None
