"""Tests messages that were stored under different wall clocks."""

from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.server.schedule.clock_of_queue import ClockOfQueue

APPEND, LOSE, STEP = "append", "lose", "step"
events = st.lists(st.tuples(st.sampled_from([APPEND, APPEND, LOSE, STEP]), st.integers(-9, 9)), max_size=40)


@given(events)
def test_each_message_is_measured_by_the_clock_that_it_was_stored_by(happened: list[tuple[str, int]]) -> None:
    clock, stepped_ms = ClockOfQueue(), 0
    stored_by: list[int] = []
    for what, number in happened:
        if what == APPEND:
            stored_by.append(stepped_ms)
        elif what == STEP:
            clock.stepped(number, len(stored_by))
            stepped_ms += number
        else:
            del stored_by[max(len(stored_by) - abs(number), 0) :]
            clock.ends_at(len(stored_by))
    assert [clock.stepped_since(offset) for offset in range(len(stored_by))] == [stepped_ms - one for one in stored_by]


def test_stretches_that_were_read_are_forgotten() -> None:
    clock = ClockOfQueue()
    for offset in range(1000):
        clock.stepped(1, offset + 1)
        clock.stepped_since(offset)
    assert len(clock._stretches) == 2
