"""Tests pull requests that wait for messages."""

from rocketmq_broker.filter import compile_sql
from rocketmq_broker.protocol.codes import SerializeType
from rocketmq_broker.protocol.command import ReplyTo
from rocketmq_broker.server.clients.message_filters import LENGTH_OF_A_TAG, MessageFilter
from rocketmq_broker.server.pulling.held_pulls import EXPRESSIONS_PER_CONNECTION, HELD_PER_CONNECTION, HeldPull, HeldPulls

ALL = MessageFilter(None)


def pull(
    offset: int = 5, queue_id: int = 0, connection: str = "one", deadline_ms: int = 1000, wanted: MessageFilter = ALL
) -> HeldPull:
    return HeldPull(connection, ReplyTo(1, SerializeType.JSON), "g", b"orders", queue_id, offset, 32, wanted, deadline_ms)


def test_a_pull_is_taken_once_its_queue_reaches_beyond_its_offset() -> None:
    held = HeldPulls()
    waiting = pull(offset=5)
    held.hold(waiting)
    assert held.take_arrived(b"orders", 0, 5) == []
    assert held.take_arrived(b"orders", 1, 9) == []
    assert held.take_arrived(b"other", 0, 9) == []
    assert held.take_arrived(b"orders", 0, 6) == [waiting]
    assert held.take_arrived(b"orders", 0, 7) == []


def test_a_pull_is_taken_when_its_time_is_up_and_not_before() -> None:
    held = HeldPulls()
    early, late = pull(deadline_ms=1000), pull(deadline_ms=2001)
    held.hold(early)
    held.hold(late)
    assert held.take_due(999) == []
    assert held.take_due(1000) == [early]
    assert held.take_due(2000) == []
    assert held.take_due(2100) == [late]
    assert len(held) == 0


def test_when_the_next_pulls_time_is_up_is_known_to_the_step() -> None:
    held = HeldPulls()
    assert held.next_due_ms() is None
    held.hold(pull(deadline_ms=2001))
    held.hold(pull(deadline_ms=1000))
    assert held.next_due_ms() == 1000
    held.take_due(1000)
    assert held.next_due_ms() == 2100


def test_what_was_taken_by_arrival_is_not_due_any_more() -> None:
    held = HeldPulls()
    held.hold(pull())
    held.take_arrived(b"orders", 0, 99)
    assert held.take_due(10_000) == []


def test_the_pulls_of_a_closed_connection_are_forgotten() -> None:
    held = HeldPulls()
    other = pull(connection="two")
    held.hold(pull(connection="one"))
    held.hold(pull(connection="one", queue_id=1))
    held.hold(other)
    held.forget("one")
    held.forget("never seen")
    assert held.take_due(10_000) == [other]


def test_a_connection_can_have_only_so_many_waiting() -> None:
    held = HeldPulls()
    assert all(held.hold(pull(queue_id=number)) for number in range(HELD_PER_CONNECTION))
    assert not held.hold(pull())
    assert held.hold(pull(connection="two"))


def test_the_pulls_of_a_connection_can_filter_by_only_so_many_characters_of_expressions() -> None:
    held = HeldPulls()
    long = MessageFilter(None, compile_sql("a = '" + "x" * 8000 + "'"))
    most = EXPRESSIONS_PER_CONNECTION // long.expression_length
    assert all(held.hold(pull(queue_id=number, wanted=long)) for number in range(most))
    assert not held.hold(pull(queue_id=most, wanted=long))
    assert held.hold(pull(queue_id=most))
    assert held.hold(pull(connection="two", wanted=long))
    held.take_arrived(b"orders", 0, 99)
    assert held.hold(pull(wanted=long))
    held.forget("one")
    assert all(held.hold(pull(queue_id=number, wanted=long)) for number in range(most))


def by_tag(*codes: int, offset: int = 5) -> HeldPull:
    return pull(offset=offset, wanted=MessageFilter(frozenset(codes)))


def test_messages_wake_those_alone_that_want_their_tags_and_those_that_want_all() -> None:
    held = HeldPulls()
    seven, eight, both, everything = by_tag(7), by_tag(8), by_tag(7, 8), pull()
    for waiting in (seven, eight, both, everything):
        held.hold(waiting)
    assert set(held.take_arrived(b"orders", 0, 6, {7})) == {seven, both, everything}
    assert held.take_arrived(b"orders", 0, 7, {9}) == []
    assert held.take_arrived(b"orders", 0, 8, {8}) == [eight]


def test_who_was_not_woken_need_not_look_at_those_messages_again() -> None:
    held = HeldPulls()
    waiting = by_tag(7)
    held.hold(waiting)
    assert held.checked_until(b"orders", 0) == 5
    held.take_arrived(b"orders", 0, 900, {1, 2})
    assert held.checked_until(b"orders", 0) == 900
    held.take_arrived(b"orders", 0, 901, {7})
    assert waiting.offset == 900


def test_a_pull_by_tag_whose_time_is_up_has_looked_at_all_that_came_meanwhile() -> None:
    held = HeldPulls()
    waiting = by_tag(7)
    held.hold(waiting)
    held.take_arrived(b"orders", 0, 900, {1})
    assert held.take_due(10_000) == [waiting]
    assert waiting.offset == 900


def test_messages_whose_tags_are_not_known_wake_everybody() -> None:
    held = HeldPulls()
    waiting = by_tag(7, 8)
    held.hold(waiting)
    assert held.take_arrived(b"orders", 0, 6, None) == [waiting]
    assert held.checked_until(b"orders", 0) is None


def test_the_tags_of_a_connections_pulls_are_bounded_together() -> None:
    held = HeldPulls()
    most = EXPRESSIONS_PER_CONNECTION // (LENGTH_OF_A_TAG * 999)
    assert all(held.hold(by_tag(*range(1000))) for _ in range(most))
    assert not held.hold(by_tag(*range(1000)))
    assert held.hold(by_tag(1))
