"""Tests that Porcupine refuses histories with planted faults, each in the model that is to notice it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lab.benchmarks.side_by_side.generator import find_go
from lab.judged.observations import ObservedConsumption, ObservedCredits, ObservedPull, ObservedRequest, ObservedState
from lab.judged.operations import operations_of
from lab.judged.verdict import judge
from tests.judged_histories import QUEUE, ShortHistory, at

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_go() is None, reason="go not found: apt-get install golang-go"),
]


def lose_a_committed_order(history: ShortHistory) -> None:
    history.end_with(queues={QUEUE: ("A",)})


def lose_a_credit(history: ShortHistory) -> None:
    history.end_with(credits={"A": 1})


def credit_an_order_twice(history: ShortHistory) -> None:
    history.observed.append(ObservedCredits("A", 1, at(33), 2, at(35)))


def take_a_credit_back(history: ShortHistory) -> None:
    history.observed.append(ObservedCredits("A", 1, at(33), 0, at(35)))


def credit_before_the_order(history: ShortHistory) -> None:
    history.change(ObservedCredits("B", 0, at(15), 1, at(19)), ObservedCredits("B", 0, at(3), 1, at(7)))


def deliver_before_the_commit(history: ShortHistory) -> None:
    history.change(ObservedState("A", at(4), "COMMITTED"), ObservedState("A", at(4), ""))


def deliver_before_the_payment(history: ShortHistory) -> None:
    history.observed.append(ObservedConsumption(QUEUE, 2, "C", at(22), is_success=True))


def deliver_a_cancelled_order(history: ShortHistory) -> None:
    history.end_with(queues={QUEUE: ("A", "B", "C")})
    history.observed.append(ObservedPull(QUEUE, 2, at(34), ((2, "C"),)))


def decide_an_order_twice(history: ShortHistory) -> None:
    history.observed.append(ObservedRequest("three", "pay", at(33), 200, "C"))


def place_one_key_twice(history: ShortHistory) -> None:
    history.observed.append(ObservedRequest("one", "place", at(33), 201, "another"))


def forget_a_placed_order(history: ShortHistory) -> None:
    history.change(ObservedRequest("three", "cancel", at(26), 200, "C"), ObservedRequest("three", "cancel", at(26), 404))


def credit_an_order_that_no_one_placed(history: ShortHistory) -> None:
    history.end_with(credits={**history.end.credits, "unheard-of": 1})


def reverse_two_messages(history: ShortHistory) -> None:
    history.observed.append(ObservedPull(QUEUE, 0, at(34), ((0, "B"), (1, "A"))))


def shorten_the_queue(history: ShortHistory) -> None:
    history.observed.append(ObservedPull(QUEUE, 1, at(34), ()))


def replace_a_message(history: ShortHistory) -> None:
    history.observed.append(ObservedPull(QUEUE, 1, at(34), ((1, "A"),)))


def leave_a_message_out(history: ShortHistory) -> None:
    history.observed.remove(ObservedConsumption(QUEUE, 0, "A", at(6), is_success=True))
    history.observed.remove(ObservedConsumption(QUEUE, 0, "A", at(16), is_success=True))


def consume_in_reverse(history: ShortHistory) -> None:
    first = next(one for one in history.observed if isinstance(one, ObservedConsumption) and one.is_success)
    history.observed.remove(ObservedConsumption(QUEUE, 0, "A", at(16), is_success=True))
    history.change(first, replace(first, at=at(20)))


def consume_not_to_the_end(history: ShortHistory) -> None:
    history.observed.remove(ObservedConsumption(QUEUE, 1, "B", at(18), is_success=True))


PLANTED: dict[Callable[[ShortHistory], None], tuple[str, str]] = {
    lose_a_committed_order: ("order", "two"),
    lose_a_credit: ("order", "two"),
    credit_an_order_twice: ("order", "one"),
    take_a_credit_back: ("order", "one"),
    credit_before_the_order: ("order", "two"),
    deliver_before_the_commit: ("order", "one"),
    deliver_before_the_payment: ("order", "three"),
    deliver_a_cancelled_order: ("order", "three"),
    decide_an_order_twice: ("order", "three"),
    place_one_key_twice: ("order", "one"),
    forget_a_placed_order: ("order", "three"),
    credit_an_order_that_no_one_placed: ("order", "unheard-of"),
    reverse_two_messages: ("queue", QUEUE),
    shorten_the_queue: ("queue", QUEUE),
    replace_a_message: ("queue", QUEUE),
    leave_a_message_out: ("group", QUEUE),
    consume_in_reverse: ("group", QUEUE),
    consume_not_to_the_end: ("group", QUEUE),
}
"""The object that is refused for each planted fault."""


def refused(history: ShortHistory, home: Path) -> set[tuple[str, str]]:
    verdicts = judge(operations_of(history.observed, history.end), home)
    assert not any(verdict.undecided for verdict in verdicts.values())
    return {(model, name) for model, verdict in verdicts.items() for name in verdict.refused}


def test_the_history_without_a_fault_is_accepted(tmp_path: Path) -> None:
    assert refused(ShortHistory(), tmp_path) == set()
    assert not (tmp_path / "refused.html").exists()


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_refused(plant: Callable[[ShortHistory], None], tmp_path: Path) -> None:
    history = ShortHistory()
    plant(history)

    assert PLANTED[plant] in refused(history, tmp_path)
    assert (tmp_path / "refused.html").stat().st_size
