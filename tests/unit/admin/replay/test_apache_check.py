"""Tests the replay of Apache's check(): removeMap, the two offsets, messages written again, immunity and discarding."""

from rocketmq_broker.admin.replay import ApacheHalf, ApacheQueues
from rocketmq_broker.transaction.checking.check_policy import CheckPolicy

MINUTE_MS = 60_000


def queues(*sent_ms: int, check_max: int = 15, immunity_s: int | None = None) -> ApacheQueues:
    found = ApacheQueues(CheckPolicy(check_max=check_max))
    for number, at_ms in enumerate(sent_ms):
        found.prepare(ApacheHalf(f"order-{number}", at_ms, at_ms, immunity_s=immunity_s))
    return found


def test_an_undecided_half_message_is_written_again_and_its_producer_is_asked_about_the_copy() -> None:
    half_queue = queues(0)
    done = half_queue.check(MINUTE_MS)
    assert [(one.offset, one.copy_offset, one.checks, one.is_asked) for one in done.put_back] == [(0, 1, 1, True)]
    assert (done.half_offset, done.op_offset, done.halves) == (1, 0, 2)


def test_a_half_message_that_an_op_message_names_is_passed_and_both_offsets_advance() -> None:
    half_queue = queues(0)
    half_queue.end(0)
    done = half_queue.check(MINUTE_MS)
    assert (done.remove_map, done.done_op_offsets, done.put_back) == ({0: 0}, [0], [])
    assert (done.half_offset, done.op_offset) == (1, 1)


def test_a_walk_ends_at_a_half_message_younger_than_the_time_out() -> None:
    half_queue = queues(MINUTE_MS - 5_999, 0)
    assert half_queue.check(MINUTE_MS).is_idle
    assert half_queue.half_offset == 0


def test_the_op_offset_stops_at_an_op_message_whose_half_message_is_still_ahead() -> None:
    half_queue = queues(0, MINUTE_MS, 0)
    half_queue.end(2)
    half_queue.end(0)
    done = half_queue.check(MINUTE_MS + 1)
    assert (done.done_op_offsets, done.half_offset, done.op_offset) == ([1], 1, 0)
    half_queue.end(1)
    done = half_queue.check(2 * MINUTE_MS)
    assert (done.remove_map, done.half_offset, done.op_offset) == ({2: 0, 0: 1, 1: 2}, 3, 3)


def test_an_op_message_beyond_the_first_32_is_read_before_a_half_message_is_written_again() -> None:
    half_queue = queues(*[0] * 40)
    for offset in reversed(range(40)):
        half_queue.end(offset)
    done = half_queue.check(MINUTE_MS)
    assert (done.put_back, done.half_offset, done.op_offset) == ([], 40, 40)


def test_a_decision_for_the_first_copy_does_not_end_the_second_one() -> None:
    half_queue = queues(0)
    half_queue.check(MINUTE_MS)
    half_queue.end(0)
    done = half_queue.check(2 * MINUTE_MS)
    assert (done.remove_map, done.done_op_offsets) == ({0: 0}, [0])
    assert [(one.offset, one.copy_offset) for one in done.put_back] == [(1, 2)]


def test_after_the_last_check_the_next_call_discards_the_copy() -> None:
    half_queue = queues(0, check_max=2)
    passes = [half_queue.check(number * MINUTE_MS) for number in (1, 2, 3, 4)]
    assert [[one.checks for one in done.put_back] for done in passes] == [[1], [2], [], []]
    assert [done.discarded for done in passes] == [[], [], ["order-0"], []]
    assert (passes[-1].halves, passes[-1].half_offset) == (3, 3)


def test_a_half_message_that_is_too_old_is_discarded_without_a_check() -> None:
    half_queue = queues(0)
    assert half_queue.check(73 * 60 * MINUTE_MS).discarded == ["order-0"]


def test_an_immune_half_message_is_written_again_at_each_call_and_uses_up_its_checks() -> None:
    half_queue = queues(0, check_max=3, immunity_s=3600)
    passes = [half_queue.check(number * MINUTE_MS) for number in (1, 2, 3, 4)]
    assert [[(one.checks, one.is_asked) for one in done.put_back] for done in passes] == [
        [(1, False)],
        [(2, False)],
        [(3, False)],
        [],
    ]
    assert passes[-1].discarded == ["order-0"]
    assert [half.first_offset for half in half_queue.halves] == [None, 0, 0, 0]


def test_after_the_immunity_the_copy_is_checked() -> None:
    half_queue = queues(0, immunity_s=90)
    passes = [half_queue.check(number * MINUTE_MS) for number in (1, 2)]
    assert [[one.is_asked for one in done.put_back] for done in passes] == [[False], [True]]


def test_a_decision_during_the_immunity_ends_only_the_first_half_message() -> None:
    half_queue = queues(0, immunity_s=3600)
    half_queue.check(MINUTE_MS)
    half_queue.end(0)
    done = half_queue.check(2 * MINUTE_MS)
    assert (done.done_op_offsets, [(one.offset, one.copy_offset) for one in done.put_back]) == ([0], [(1, 2)])


def test_a_half_message_that_is_stored_as_the_call_begins_waits_for_the_next_one_even_if_it_is_immune() -> None:
    half_queue = queues(MINUTE_MS, immunity_s=3600)
    assert half_queue.check(MINUTE_MS).is_idle
    assert len(half_queue.check(2 * MINUTE_MS).put_back) == 1
