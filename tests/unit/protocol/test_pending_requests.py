"""Pending requests: who waits for which answer, and how long."""

import pytest

from broker.protocol.pending import PendingRequests, TooManyPending


def test_an_answer_finds_who_waits_once() -> None:
    pending = PendingRequests[str]()
    opaque = pending.add("first", 100)
    assert pending.take(opaque) == "first"
    assert pending.take(opaque) is None


def test_no_two_requests_share_an_opaque() -> None:
    pending = PendingRequests[int]()
    opaques = [pending.add(number, 100) for number in range(1000)]
    assert len(set(opaques)) == 1000


def test_opaques_begin_anew_after_the_largest_and_pass_over_those_in_use() -> None:
    pending = PendingRequests[str]()
    assert pending.add("long", 100) == 0
    pending._next_opaque = 2**31 - 1
    assert pending.add("last", 100) == 2**31 - 1
    assert pending.add("next", 100) == 1


def test_what_is_late_is_given_up_at_its_deadline_and_not_before() -> None:
    pending = PendingRequests[str]()
    pending.add("late", 100)
    pending.add("later", 200)
    assert pending.earliest_deadline_ms() == 100
    assert pending.take_expired(99) == []
    assert pending.take_expired(100) == ["late"]
    assert pending.earliest_deadline_ms() == 200
    assert len(pending) == 1


def test_all_are_given_up_when_the_connection_ends() -> None:
    pending = PendingRequests[str]()
    pending.add("one", 1)
    pending.add("two", 2)
    assert pending.take_all() == ["one", "two"]
    assert pending.earliest_deadline_ms() is None


def test_no_more_wait_than_the_limit() -> None:
    pending = PendingRequests[str](limit=1)
    opaque = pending.add("one", 1)
    with pytest.raises(TooManyPending, match="1 requests wait"):
        pending.add("two", 1)
    pending.take(opaque)
    pending.add("two", 1)
