"""Credits of several threads go in one task while a task is under way; each thread gets what became of its own."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from credit_service.domain.credit import Credit, CreditOutcome
from credit_service.service_layer.crediting import CreditingFailed, CreditingUnavailable
from credit_service.service_layer.gathered_crediting import PATIENCE_S, GatheredCrediting
from order_messages.states import EntryKind
from rocketmq_broker.world import World

CREDITED, ALREADY = CreditOutcome.CREDITED, CreditOutcome.ALREADY_CREDITED
WITHIN_S = 30.0


def a_credit(order_id: str, kind: EntryKind = EntryKind.CREDIT) -> Credit:
    return Credit(order_id=order_id, customer="ada", amount_cents=100, message_id="m", transaction_id="t", kind=kind)


class Tasks:
    """Writes credits, but for the tasks that the test holds back or lets fail."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.held: dict[str, threading.Event] = {}
        self.begun: dict[str, threading.Event] = {}
        self.failure: Callable[[list[str]], Exception | None] = lambda order_ids: None
        self.now_ns = 0
        self.takes_s = 0.0

    def hold(self, order_id: str) -> threading.Event:
        self.begun[order_id] = threading.Event()
        self.held[order_id] = threading.Event()
        return self.held[order_id]

    def credit(self, credits: Sequence[Credit], *, is_again: bool, is_given_up: Callable[[], bool]) -> list[CreditOutcome | None]:
        order_ids = [credit.order_id for credit in credits]
        self.batches.append(order_ids)
        self.now_ns += int(self.takes_s * 1e9)
        for order_id in order_ids:
            if order_id in self.held:
                self.begun[order_id].set()
                assert self.held[order_id].wait(WITHIN_S)
        if (failure := self.failure(order_ids)) is not None:
            raise failure
        return [ALREADY if order_id.endswith("again") else CREDITED for order_id in order_ids]


class Line:
    """Knows who waits, and whether their patience is over: the test owns that time."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.waiting = 0
        self.is_patience_over = False
        self.rests_s: list[float] = []

    def acquire(self, try_it: Callable[[], bool], timeout_s: float) -> bool:
        with self._changed:
            if timeout_s < PATIENCE_S:
                self.rests_s.append(timeout_s)
            self.waiting += 1
            self._changed.notify_all()
            ends_s = time.monotonic() + WITHIN_S
            while not (is_so := try_it()) and not (self.is_patience_over and timeout_s <= PATIENCE_S):
                assert time.monotonic() < ends_s, "the test let nobody go on"
                self._changed.wait(0.001)
            self.waiting -= 1
            return is_so

    def until_waiting(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.waiting == count, WITHIN_S)

    def until_resting(self, count: int) -> list[float]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.rests_s) == count, WITHIN_S)
            return self.rests_s

    def lose_patience(self) -> None:
        with self._changed:
            self.is_patience_over = True


class Desk:
    """A gathered crediting, and threads that bring credits."""

    def __init__(self, pool: ThreadPoolExecutor, batch_size: int = 32) -> None:
        self.tasks, self.line = Tasks(), Line()
        world = World(acquire=self.line.acquire, steady_ns=lambda: self.tasks.now_ns)
        self.gathered = GatheredCrediting(self.tasks, world, batch_size=batch_size)
        self._pool = pool

    def bring(self, *credits: Credit, is_again: bool = False) -> "Future[list[CreditOutcome | None]]":
        return self._pool.submit(self.gathered.credit, credits, is_again=is_again, is_given_up=lambda: False)

    def keep_busy(self) -> tuple["Future[list[CreditOutcome | None]]", threading.Event]:
        may_end = self.tasks.hold("first")
        first = self.bring(a_credit("first"))
        assert self.tasks.begun["first"].wait(WITHIN_S)
        return first, may_end

    def bring_while_busy(self, *order_ids: str) -> "list[Future[list[CreditOutcome | None]]]":
        futures = []
        for count, order_id in enumerate(order_ids, start=1):
            futures.append(self.bring(a_credit(order_id)))
            self.line.until_waiting(count)
        return futures


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as running:
        yield running


@pytest.fixture
def desk(pool: ThreadPoolExecutor) -> Desk:
    return Desk(pool)


def test_credits_that_come_alone_go_at_once(desk: Desk) -> None:
    for order_id in ("a", "b"):
        assert desk.bring(a_credit(order_id)).result(WITHIN_S) == [CREDITED]
    assert desk.tasks.batches == [["a"], ["b"]]


def test_what_comes_while_a_task_is_under_way_goes_together_afterwards(desk: Desk) -> None:
    first, may_end = desk.keep_busy()
    others = desk.bring_while_busy("a", "b-again", "c")
    may_end.set()
    assert first.result(WITHIN_S) == [CREDITED]
    assert [other.result(WITHIN_S) for other in others] == [[CREDITED], [ALREADY], [CREDITED]]
    assert [sorted(batch) for batch in desk.tasks.batches] == [["first"], ["a", "b-again", "c"]]


def test_a_task_that_does_not_end_keeps_nobody_longer_than_patience_lasts(desk: Desk) -> None:
    _, may_end = desk.keep_busy()
    others = desk.bring_while_busy("a", "b")
    desk.line.lose_patience()
    assert [other.result(WITHIN_S) for other in others] == [[CREDITED], [CREDITED]]
    may_end.set()


def test_after_a_task_credits_gather_for_three_times_as_long_as_it_took(desk: Desk) -> None:
    desk.tasks.takes_s = 0.02
    assert desk.bring(a_credit("first")).result(WITHIN_S) == [CREDITED]
    desk.tasks.now_ns += 5_000_000
    others = [desk.bring(a_credit(order_id)) for order_id in "ab"]
    assert desk.line.until_resting(2) == [0.055, 0.055]
    desk.line.lose_patience()
    assert [other.result(WITHIN_S) for other in others] == [[CREDITED], [CREDITED]]
    assert [sorted(batch) for batch in desk.tasks.batches] == [["first"], ["a", "b"]]
    desk.tasks.now_ns += 60_000_000
    assert desk.bring(a_credit("c")).result(WITHIN_S) == [CREDITED]
    assert len(desk.line.rests_s) == 2, "a later order is sent at once"


def test_after_a_long_task_nobody_waits_longer_than_patience_lasts(desk: Desk) -> None:
    desk.tasks.takes_s = 60.0
    assert desk.bring(a_credit("first")).result(WITHIN_S) == [CREDITED]
    desk.tasks.now_ns += 1_000_000
    other = desk.bring(a_credit("a"))
    assert desk.line.until_resting(1) == [PATIENCE_S - 0.001]
    desk.line.lose_patience()
    assert other.result(WITHIN_S) == [CREDITED]


def test_a_full_batch_does_not_wait_after_a_task(pool: ThreadPoolExecutor) -> None:
    desk = Desk(pool, batch_size=2)
    desk.tasks.takes_s = 0.02
    assert desk.bring(a_credit("first")).result(WITHIN_S) == [CREDITED]
    assert desk.bring(a_credit("a"), a_credit("b")).result(WITHIN_S) == [CREDITED, CREDITED]


def test_a_full_batch_waits_for_no_task(pool: ThreadPoolExecutor) -> None:
    desk = Desk(pool, batch_size=2)
    _, may_end = desk.keep_busy()
    assert desk.bring(a_credit("a"), a_credit("b")).result(WITHIN_S) == [CREDITED, CREDITED]
    may_end.set()


def test_a_batch_is_never_larger_than_asked_for(pool: ThreadPoolExecutor) -> None:
    desk = Desk(pool, batch_size=3)
    _, may_end = desk.keep_busy()
    two = [desk.bring(a_credit(f"{name}1"), a_credit(f"{name}2")) for name in "ab"]
    may_end.set()
    assert [each.result(WITHIN_S) for each in two] == [[CREDITED, CREDITED]] * 2
    assert max(map(len, desk.tasks.batches)) <= 3


def test_kinds_are_not_mixed(desk: Desk) -> None:
    _, may_end = desk.keep_busy()
    credit, reversal = desk.bring(a_credit("a")), desk.bring(a_credit("a", EntryKind.REVERSAL))
    desk.line.until_waiting(2)
    may_end.set()
    assert [credit.result(WITHIN_S), reversal.result(WITHIN_S)] == [[CREDITED], [CREDITED]]
    assert desk.tasks.batches == [["first"], ["a"], ["a"]]


def test_a_bad_order_in_the_middle_of_a_gathered_batch_fails_alone(desk: Desk) -> None:
    desk.tasks.failure = lambda order_ids: CreditingFailed("the task failed") if "bad" in order_ids else None
    _, may_end = desk.keep_busy()
    good, bad, other = desk.bring_while_busy("a", "bad", "c")
    may_end.set()
    assert [good.result(WITHIN_S), other.result(WITHIN_S)] == [[CREDITED], [CREDITED]]
    with pytest.raises(CreditingFailed, match="the task failed"):
        bad.result(WITHIN_S)
    assert sorted(map(sorted, desk.tasks.batches)) == [["a"], ["a", "bad", "c"], ["bad"], ["c"], ["first"]]


def test_a_gathered_batch_without_an_answer_is_unavailable_for_each(desk: Desk) -> None:
    desk.tasks.failure = lambda order_ids: CreditingUnavailable("no answer") if len(order_ids) > 1 else None
    _, may_end = desk.keep_busy()
    others = desk.bring_while_busy("a", "b")
    may_end.set()
    for other in others:
        with pytest.raises(CreditingUnavailable, match="no answer"):
            other.result(WITHIN_S)
    again = [desk.bring(a_credit(order_id), is_again=True) for order_id in "ab"]
    assert [each.result(WITHIN_S) for each in again] == [[CREDITED], [CREDITED]]


def test_an_error_that_nobody_expects_leaves_no_thread_waiting(desk: Desk) -> None:
    desk.tasks.failure = lambda order_ids: ValueError("a bug") if "a" in order_ids else None
    _, may_end = desk.keep_busy()
    others = desk.bring_while_busy("a", "b")
    may_end.set()
    errors = {type(other.exception(WITHIN_S)) for other in others}
    assert errors == {ValueError, CreditingUnavailable}
    assert desk.bring(a_credit("c")).result(WITHIN_S) == [CREDITED]


def test_a_repeated_try_is_never_gathered(desk: Desk) -> None:
    _, may_end = desk.keep_busy()
    assert desk.bring(a_credit("a"), is_again=True).result(WITHIN_S) == [CREDITED]
    may_end.set()


def test_threads_in_real_time_each_get_the_outcomes_of_their_own(pool: ThreadPoolExecutor) -> None:
    tasks = Tasks()
    tasks.failure = lambda order_ids: CreditingFailed("bad") if any("bad" in order_id for order_id in order_ids) else None
    gathered = GatheredCrediting(tasks, World(), batch_size=4)

    def bring(number: int) -> list[CreditOutcome | None] | str:
        credits = [a_credit(f"{number}-again"), a_credit(f"{number}-bad" if number % 10 == 0 else f"{number}")]
        try:
            return gathered.credit(credits, is_again=False, is_given_up=lambda: False)
        except CreditingFailed:
            return "failed"

    answers = list(pool.map(bring, range(200)))
    assert answers == ["failed" if number % 10 == 0 else [ALREADY, CREDITED] for number in range(200)]
