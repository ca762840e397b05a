"""Tests pending requests: which request a response completes, and when a request times out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.protocol.pending import PendingRequests, TooManyPending


def test_an_answer_finds_who_waits_once() -> None:
    pending = PendingRequests[str]()
    opaque = pending.add("first", 100)
    assert pending.take(opaque) == "first"
    assert pending.take(opaque) is None


def test_no_two_requests_share_an_opaque() -> None:
    pending = PendingRequests[int]()
    opaques = [pending.add(number, 100) for number in range(1000)]
    assert len(set(opaques)) == 1000


def test_opaques_wrap_around_after_the_largest_and_skip_those_in_use() -> None:
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
    with pytest.raises(TooManyPending, match="too many requests are waiting for a response: at most 1"):
        pending.add("two", 1)
    pending.take(opaque)
    pending.add("two", 1)


@given(st.lists(st.tuples(st.sampled_from(["add", "take", "expire"]), st.integers(0, 20)), max_size=60))
def test_each_request_is_completed_exactly_once(steps: list[tuple[str, int]]) -> None:
    """In any order of requests, responses and time, the result equals that of a plain list of waiting requests."""
    pending, waiting, now_ms = PendingRequests[int](), dict[int, int](), 0
    for number, (step, by) in enumerate(steps):
        if step == "add":
            opaque = pending.add(number, now_ms + by)
            assert opaque not in waiting
            waiting[opaque] = now_ms + by
        elif step == "take" and waiting:
            opaque = sorted(waiting)[by % len(waiting)]
            del waiting[opaque]
            assert pending.take(opaque) is not None
            assert pending.take(opaque) is None
        elif step == "expire":
            now_ms += by
            late = [opaque for opaque, deadline_ms in waiting.items() if deadline_ms <= now_ms]
            assert len(pending.take_expired(now_ms)) == len(late)
            for opaque in late:
                del waiting[opaque]
        assert len(pending) == len(waiting)
        assert pending.earliest_deadline_ms() == min(waiting.values(), default=None)
    assert len(pending.take_all()) == len(waiting)
    assert len(pending) == 0


def test_an_opaque_for_a_request_that_nobody_waits_for_is_not_in_use() -> None:
    pending = PendingRequests[str]()
    opaque = pending.add("waits", 100)
    oneway = pending.next_opaque()
    assert oneway != opaque
    assert pending.take(oneway) is None
    assert len(pending) == 1
