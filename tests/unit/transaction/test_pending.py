import sys

import pytest

from rocketmq_broker.transaction.pending import PendingTransactions
from rocketmq_broker.transaction.pending_transaction import RecordOffsets
from rocketmq_broker.transaction.states import State
from tests.unit.transaction.records import pending, transaction


def table_of(*begun: tuple[int, int]) -> PendingTransactions:
    """Returns transactions by commit log offset and due time. Their half queue offsets are 0, 1, ..."""
    table = PendingTransactions(check_interval_ms=60_000)
    for queue_offset, (offset, due_ms) in enumerate(begun):
        table.add(transaction(offset, queue_offset, due_ms=due_ms))
    table.confirm(1_000_000)
    return table


def settle(table: PendingTransactions, offset: int, op_offset: int, outcome: State = State.COMMITTED) -> None:
    table.end(pending(table, offset), outcome, RecordOffsets(10_000 + op_offset, op_offset))


def test_what_is_due_comes_in_the_order_of_its_time_and_not_before() -> None:
    table = table_of((100, 6000), (200, 4000), (300, 9000))

    assert [t.commit_log_offset for t in table.due_times.take_due(6000, 10)] == [200, 100]
    assert table.due_times.take_due(6000, 10) == []
    assert table.due_times.next_ms() == 9000


def test_what_was_due_is_due_again_after_the_interval_whatever_the_caller_did() -> None:
    table = table_of((100, 6000))

    table.due_times.take_due(6000, 10)

    assert table.due_times.take_due(65_999, 10) == []
    assert len(table.due_times.take_due(66_000, 10)) == 1


def test_a_limit_leaves_the_rest_due() -> None:
    table = table_of((100, 1), (200, 2), (300, 3))

    assert len(table.due_times.take_due(10, 2)) == 2
    assert [t.commit_log_offset for t in table.due_times.take_due(10, 2)] == [300]


def test_a_settled_transaction_is_never_due() -> None:
    table = table_of((100, 6000))
    settle(table, 100, 0)

    assert table.due_times.take_due(10_000, 10) == []
    assert table.find(100) is None
    assert table.ended.state_of(100) is State.COMMITTED


def test_a_decision_is_taken_back_if_it_did_not_reach_the_disk() -> None:
    table = table_of((100, 6000), (200, 6000))
    settle(table, 100, 0)

    table.take_back(10_000)

    assert table.find(100) is not None
    assert table.ended.state_of(100) is None
    assert [t.commit_log_offset for t in table] == [100, 200]
    assert sorted(t.commit_log_offset for t in table.due_times.take_due(6000, 10)) == [100, 200]
    assert table.due_times.take_due(6000, 10) == []
    assert table.advance_offsets() == (0, 0)


def test_only_what_was_lost_is_taken_back() -> None:
    table = table_of((100, 6000), (200, 6000))
    settle(table, 100, 0)
    settle(table, 200, 1)

    table.take_back(10_001)

    assert [t.commit_log_offset for t in table] == [200]
    assert table.ended.state_of(100) is State.COMMITTED


def test_what_is_confirmed_cannot_be_taken_back() -> None:
    table = table_of((100, 6000))
    settle(table, 100, 0)
    table.confirm(10_001)

    table.take_back(0)

    assert len(table) == 0


def test_a_half_message_is_taken_back() -> None:
    table = table_of((100, 6000))
    table.add(transaction(200, 1))

    table.take_back(200)

    assert [t.commit_log_offset for t in table] == [100]
    assert [table.behind_newest(t) for t in table] == [1]


def test_a_taken_back_transaction_whose_due_time_had_passed_is_due_once() -> None:
    table = table_of((100, 6000))
    settle(table, 100, 0)
    assert table.due_times.take_due(7000, 10) == []

    table.take_back(10_000)

    assert len(table.due_times.take_due(7000, 10)) == 1


def test_a_move_keeps_the_offsets_that_decisions_refer_to() -> None:
    table = table_of((100, 6000), (200, 6000))
    moving = pending(table)

    table.put_back(moving, RecordOffsets(900, 2), RecordOffsets(10_000, 0))

    assert table.find(100) is moving
    assert (moving.commit_log_offset, moving.queue_offset) == (100, 0)
    assert (moving.stored_at, moving.stored_queue_offset) == (900, 2)
    assert [t.commit_log_offset for t in table] == [200, 100]
    assert table.advance_offsets() == (1, 1)


def test_a_move_is_taken_back() -> None:
    table = table_of((100, 6000), (200, 6000))
    moving = pending(table)
    table.put_back(moving, RecordOffsets(900, 2), RecordOffsets(10_000, 0))

    table.take_back(900)

    assert (moving.stored_at, moving.stored_queue_offset) == (100, 0)
    assert [t.commit_log_offset for t in table] == [100, 200]
    assert [table.behind_newest(t) for t in table] == [2, 1]


def test_consumer_offsets_stop_at_the_oldest_undecided_one() -> None:
    table = table_of((100, 6000), (200, 6000), (300, 6000))
    settle(table, 300, 0)
    settle(table, 100, 1)

    assert table.advance_offsets() == (1, 0)
    settle(table, 200, 2)
    assert table.advance_offsets() == (3, 3)


@pytest.mark.parametrize("step_ms", [-3_599_000, 3_600_000, 4 * 24 * 3_600_000])
def test_a_clock_that_is_set_neither_puts_checks_off_nor_lets_anybody_grow_older(step_ms: int) -> None:
    table = PendingTransactions(check_interval_ms=60_000)
    table.add(transaction(100, 0, begun_ms=3_600_000, due_ms=3_606_000))

    table.clock_stepped(step_ms)
    table.add(transaction(200, 1, begun_ms=3_600_000 + step_ms, due_ms=3_606_000 + step_ms))

    assert [one.begun_ms for one in table] == [3_600_000 + step_ms] * 2
    assert table.due_times.take_due(3_605_999 + step_ms, 10) == []
    assert sorted(t.commit_log_offset for t in table.due_times.take_due(3_606_000 + step_ms, 10)) == [100, 200]


def test_a_decision_that_is_taken_back_after_the_clock_was_set_leaves_the_transaction_as_old_as_it_was() -> None:
    table = PendingTransactions(check_interval_ms=60_000)
    table.add(transaction(100, 0, begun_ms=0, due_ms=6000))
    table.confirm(500)
    settle(table, 100, 0)

    table.clock_stepped(-1_000_000)
    table.take_back(0)

    (one,) = table
    assert (one.begun_ms, one.due_ms) == (-1_000_000, -994_000)
    assert table.due_times.take_due(-994_000, 10) == [one]


def watched(table: PendingTransactions, until_ms: int | None) -> list[str]:
    """Watches for transactions due before `until_ms`. Returns the list to which each notification is appended."""
    noted: list[str] = []
    table.due_times.watch(until_ms, lambda: noted.append("sooner"))
    return noted


def test_a_sleeper_is_woken_once_when_a_half_message_is_due_sooner() -> None:
    table = table_of((100, 6000))
    noted = watched(table, table.due_times.next_ms())

    table.add(transaction(200, 1, due_ms=6000))
    assert noted == []
    for offset in (300, 400):
        table.add(transaction(offset, offset, due_ms=5999))
    assert noted == ["sooner"]


def test_a_sleeper_without_a_deadline_is_woken_by_any_half_message() -> None:
    table = table_of()
    noted = watched(table, None)

    table.add(transaction(100, 0, due_ms=1 << 50))

    assert noted == ["sooner"]


@pytest.mark.parametrize("step_ms", [1_000_000, -1_000_000])
def test_after_a_clock_change_a_sleeper_is_woken_only_by_what_is_due_sooner_on_the_new_clock(step_ms: int) -> None:
    table = table_of((100, 6000))
    noted = watched(table, table.due_times.next_ms())
    table.clock_stepped(step_ms)

    table.add(transaction(200, 1, due_ms=6000 + step_ms))
    assert noted == []
    table.add(transaction(300, 2, due_ms=5999 + step_ms))
    assert noted == ["sooner"]


def test_a_sleeper_is_woken_by_a_transaction_whose_decision_was_taken_back() -> None:
    table = table_of((100, 6000))
    settle(table, 100, 0)
    table.due_times.take_due(7000, 10)
    noted = watched(table, table.due_times.next_ms())

    table.take_back(10_000)

    assert noted == ["sooner"]


def test_settled_transactions_do_not_pile_up_in_the_heap() -> None:
    table = PendingTransactions(check_interval_ms=60_000)
    for number in range(50_000):
        table.add(transaction(number, number, due_ms=6000 + number))
        settle(table, number, number)
        table.confirm(1_000_000)

    assert len(table.due_times) < 10_000
    assert len(table.ended) <= 20_000 + 2


@pytest.mark.slow
def test_asking_what_is_due_does_not_touch_what_is_not() -> None:
    table = table_of(*[(number, 1_000_000 + number) for number in range(100_000)])
    steps = 0

    def count(frame: object, event: str, arg: object) -> None:
        nonlocal steps
        steps += 1

    sys.setprofile(count)
    try:
        for now_ms in range(100):
            assert table.due_times.take_due(now_ms, 100) == []
    finally:
        sys.setprofile(None)

    assert steps < 2000


def test_transactions_held_back_again_and_again_do_not_fill_the_memory() -> None:
    table = table_of(*((number, 0) for number in range(1000)))
    for now_ms in range(0, 30_000, 1000):
        held_back = table.due_times.take_due(now_ms, 1000)
        assert len(held_back) == 1000
        for each in held_back:
            table.due_times.reschedule(each, now_ms + 1000)
    assert len(table.due_times) < 10_000


def test_the_closing_of_a_superseded_copy_is_taken_back() -> None:
    table = table_of((100, 6000), (200, 6000))
    settle(table, 100, 0)
    table.close_copy(7, RecordOffsets(10_001, 1))
    assert table.advance_offsets() == (1, 1)

    table.take_back(10_001)
    settle(table, 200, 1)

    assert table.ended.state_of(100) is State.COMMITTED
    assert table.advance_offsets() == (2, 2)


def test_a_transaction_put_off_to_the_time_it_has_already_is_due_once() -> None:
    table = table_of((100, 6000))
    found = pending(table)

    table.due_times.reschedule(found, 6000)

    assert table.due_times.take_due(6000, 10) == [found]
    assert table.due_times.take_due(6000, 10) == []
    assert table.due_times.next_ms() == 66_000
