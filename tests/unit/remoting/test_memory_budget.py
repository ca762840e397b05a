"""Tests the memory limit for all connections together."""

from rocketmq_broker.remoting.connections.memory_budget import MemoryBudget


class Holder:
    def __init__(self, budget: MemoryBudget, held_bytes: int) -> None:
        self.held_bytes = held_bytes
        self.is_open = True
        budget.note(self, held_bytes)

    def give_up(self, total_bytes: int) -> None:
        self.is_open = False


def test_the_largest_connection_is_closed_when_the_total_is_too_large() -> None:
    budget = MemoryBudget(100_000)
    small, large = Holder(budget, 30_000), Holder(budget, 60_000)
    last = Holder(budget, 20_000)
    assert (small.is_open, large.is_open, last.is_open) == (True, False, True)
    assert budget.total_bytes == 50_000


def test_as_many_are_closed_as_it_takes() -> None:
    budget = MemoryBudget(100_000)
    holders = [Holder(budget, 30_000 + number) for number in range(3)]
    holders.append(Holder(budget, 90_000))
    assert [holder.is_open for holder in holders] == [True, True, True, False]


def test_all_are_counted_again_before_one_is_closed() -> None:
    budget = MemoryBudget(100_000)
    drained, other = Holder(budget, 60_000), Holder(budget, 30_000)
    drained.held_bytes = 0
    newest = Holder(budget, 50_000)
    assert [holder.is_open for holder in (drained, other, newest)] == [True] * 3
    assert budget.total_bytes == 80_000


def test_what_a_connection_holds_is_counted_once_and_no_longer_than_it_lives() -> None:
    budget = MemoryBudget(100_000)
    holder = Holder(budget, 50_000)
    budget.note(holder, 70_000)
    assert budget.total_bytes == 70_000
    budget.note(holder, 10)
    assert budget.total_bytes == 0
    budget.note(holder, 50_000)
    budget.forget(holder)
    assert budget.total_bytes == 0
