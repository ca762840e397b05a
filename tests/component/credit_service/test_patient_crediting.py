"""Outages are waited out, and the one bad order is found, whatever else goes on."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from credit_service.adapters.celery_crediting import CeleryCrediting
from credit_service.adapters.ledger import Ledger, LedgerUnavailable
from credit_service.domain.credit import Credit, CreditOutcome
from credit_service.service_layer.crediting import Later
from credit_service.service_layer.gathered_crediting import GatheredCrediting
from credit_service.service_layer.patient_crediting import PatientCrediting
from order_messages.states import EntryKind
from rocketmq_broker.client import ConsumeContext, MessagesWithdrawn
from rocketmq_broker.world import World
from service_runtime.failing.holds import ASIDE_S, HoldCause, Holds
from tests.component.credit_service.conftest import a_context, a_credit, a_reversal
from tests.unit.credit_service.credit_side import CreditSide, NoAnswer

CREDITED = CreditOutcome.CREDITED
TIMEOUT_S = 10.0
THREADS = 4
HOUR_S = 3600.0
LONG_S = HOUR_S


@pytest.fixture
def side(sqlite_ledger: Ledger) -> CreditSide:
    return CreditSide(sqlite_ledger)


@pytest.fixture
def holds(side: CreditSide) -> Holds:
    return Holds(now_s=side.clock)


@pytest.fixture
def patient(side: CreditSide, holds: Holds) -> PatientCrediting:
    world = World(steady_ns=lambda: int(side.clock() * 1e9))
    crediting = CeleryCrediting(side, world, timeout_s=TIMEOUT_S)
    gathered = GatheredCrediting(crediting, world, batch_size=32)
    return PatientCrediting(crediting, holds, threads=THREADS, wait=side.clock.wait, gathered=gathered)


def batch(count: int, first: int = 0) -> list[Credit]:
    return [a_credit(f"order-{number}", amount_cents=100) for number in range(first, first + count)]


def orders(*order_ids: str) -> Callable[[Sequence[Credit]], BaseException | None]:
    """Tasks with one of these orders fail, as by a bug in the worker."""
    return lambda credits: KeyError("bug") if any(credit.order_id in order_ids for credit in credits) else None


def points(side: CreditSide) -> int:
    found = side.ledger.find_customer("ada", max_entries=1)
    return found.points if found else 0


def after(seconds: float, side: CreditSide) -> Callable[[], bool]:
    return lambda: side.clock() >= seconds


@pytest.mark.parametrize("what", ["is_redis_up", "are_workers_up", "is_database_up"])
def test_an_outage_of_hours_costs_time_and_nothing_else(side: CreditSide, patient: PatientCrediting, what: str) -> None:
    setattr(side, what, after(LONG_S, side))
    assert patient.credit(batch(32), a_context()) == [CREDITED] * 32
    assert LONG_S <= side.clock() < LONG_S + 60
    assert side.most_waiting == 1


def test_a_bad_order_is_found_and_only_that_one_comes_again(side: CreditSide, patient: PatientCrediting) -> None:
    side.poison = orders("order-13")
    outcomes = patient.credit(batch(32), a_context())
    assert [position for position, outcome in enumerate(outcomes) if outcome is None] == [13]
    assert (points(side), side.clock()) == (31, 0)


def test_several_bad_orders_are_found_in_one_batch(side: CreditSide, patient: PatientCrediting) -> None:
    bad = {0, 1, 15, 16, 31}
    side.poison = orders(*(f"order-{number}" for number in bad))
    outcomes = patient.credit(batch(32), a_context())
    assert {position for position, outcome in enumerate(outcomes) if outcome is None} == bad
    assert points(side) == 32 - len(bad)


def test_a_bad_order_alone_waits_until_another_passes_and_comes_again_then(
    side: CreditSide, holds: Holds, patient: PatientCrediting
) -> None:
    side.poison = orders("order-0")
    context = PassesAnother(patient, after_waits=50, side=side)
    waiting = PatientCrediting(patient.crediting, holds, threads=THREADS, wait=context.wait)
    assert waiting.credit(batch(1), a_context()) == [None]
    assert context.waits > 50
    assert points(side) == 1


class PassesAnother:
    """While the bad order waits, another thread's order passes."""

    def __init__(self, patient: PatientCrediting, *, after_waits: int, side: CreditSide) -> None:
        self._patient, self._after, self._side = patient, after_waits, side
        self.waits = 0

    def wait(self, context: ConsumeContext, seconds: float) -> None:
        self._side.clock.wait(context, seconds)
        self.waits += 1
        if self.waits == self._after:
            assert self._patient.credit(batch(1, first=100), a_context()) == [CREDITED]


def test_a_pause_ends_soon_after_the_orders_of_another_pass(side: CreditSide, holds: Holds, patient: PatientCrediting) -> None:
    side.is_redis_up = after(HOUR_S, side)

    def pass_another(context: ConsumeContext, seconds: float) -> None:
        side.clock.wait(context, seconds)
        if side.clock() > HOUR_S:
            holds.has_passed(EntryKind.CREDIT)

    waiting = PatientCrediting(patient.crediting, holds, threads=THREADS, wait=pass_another)
    assert waiting.credit(batch(1), a_context()) == [CREDITED]
    assert HOUR_S < side.clock() <= HOUR_S + 1


@pytest.mark.parametrize("fault", [LedgerUnavailable("a value that the driver cannot bind"), None])
def test_an_order_that_looks_like_an_outage_whenever_it_is_tried_does_not_hold_up_its_batch_for_ever(
    side: CreditSide, holds: Holds, patient: PatientCrediting, fault: Exception | None
) -> None:
    """None: its worker dies of it without an answer."""
    side.poison = lambda credits: (fault or NoAnswer()) if any(credit.order_id == "order-5" for credit in credits) else None

    def pass_another(context: ConsumeContext, seconds: float) -> None:
        side.clock.wait(context, seconds)
        holds.has_passed(EntryKind.CREDIT)

    waiting = PatientCrediting(patient.crediting, holds, threads=THREADS, wait=pass_another)
    outcomes = waiting.credit(batch(8), a_context())
    assert [position for position, outcome in enumerate(outcomes) if outcome is None] == [5]
    assert points(side) == 7
    assert side.clock() < HOUR_S


def test_bad_orders_that_occupy_all_threads_give_way_to_the_others_and_spend_no_redelivery(
    side: CreditSide, holds: Holds, patient: PatientCrediting
) -> None:
    side.poison = orders(*(f"order-{number}" for number in range(THREADS)))
    with ThreadPoolExecutor(THREADS) as threads:
        outcomes = list(threads.map(lambda number: patient.credit(batch(1, number), a_context()), range(THREADS + 1)))
    assert outcomes[THREADS] == [CREDITED]
    assert {outcome for (outcome,) in outcomes[:THREADS]} <= {Later.GAVE_WAY, None}
    assert [Later.GAVE_WAY] in outcomes


def test_a_bug_in_every_task_with_orders_gives_way_again_and_again_and_spends_no_redelivery(
    side: CreditSide, holds: Holds, patient: PatientCrediting
) -> None:
    """A task without orders would pass, and says nothing of those with orders."""
    side.poison = lambda credits: TypeError("a bug in every task with orders") if credits else None
    alone = PatientCrediting(patient.crediting, holds, threads=1, wait=side.clock.wait)
    for _ in range(30):
        assert alone.credit(batch(2), a_context()) == [Later.GAVE_WAY] * 2
        holding = holds.state()
        assert holding is not None
        assert (holding.orders, holding.cause) == (2, HoldCause.SUSPICION)
        side.clock.advance(ASIDE_S + 1)


def test_only_what_writes_something_new_shows_that_tasks_pass(side: CreditSide, holds: Holds, patient: PatientCrediting) -> None:
    patient.credit(batch(1), a_context())
    assert (holds.passed(EntryKind.CREDIT), holds.passed(EntryKind.REVERSAL)) == (1, 0)
    assert patient.credit(batch(1), a_context()) == [CreditOutcome.ALREADY_CREDITED]
    assert holds.passed(EntryKind.CREDIT) == 1


def test_a_batch_of_both_kinds_is_tried_kind_by_kind(side: CreditSide, holds: Holds, patient: PatientCrediting) -> None:
    mixed = [a_credit("1"), a_reversal("2"), a_reversal("3"), a_credit("4")]
    assert patient.credit(mixed, a_context()) == [CREDITED] * 4
    assert (side.sent, holds.passed(EntryKind.CREDIT), holds.passed(EntryKind.REVERSAL)) == (3, 2, 1)


def test_what_is_held_is_let_go_of_when_it_is_withdrawn(side: CreditSide, holds: Holds, patient: PatientCrediting) -> None:
    side.is_redis_up = lambda: False
    context = a_context()

    def stop_after_an_hour(context: ConsumeContext, seconds: float) -> None:
        if side.clock() > HOUR_S:
            context.withdrawn.set()
        side.clock.wait(context, seconds)

    stopping = PatientCrediting(patient.crediting, holds, threads=THREADS, wait=stop_after_an_hour)
    with pytest.raises(MessagesWithdrawn):
        stopping.credit(batch(32), context)
    assert holds.state() is None


def test_a_batch_whose_task_is_under_way_when_the_consumer_stops_is_finished(side: CreditSide, patient: PatientCrediting) -> None:
    context = a_context()
    context.withdrawn.set()
    side.are_workers_up = after(TIMEOUT_S / 2, side)
    assert patient.credit(batch(32), context) == [CREDITED] * 32


def test_a_batch_that_was_held_before_the_consumer_stops_is_not_waited_for(side: CreditSide, patient: PatientCrediting) -> None:
    context = a_context()
    side.are_workers_up = lambda: not (side.clock() > 5 * TIMEOUT_S and context.withdrawn.set() is None) and False
    with pytest.raises(MessagesWithdrawn):
        patient.credit(batch(32), context)
    assert side.clock() < 6 * TIMEOUT_S


@pytest.fixture(autouse=True)
def _nothing_is_held_in_the_end(side: CreditSide, holds: Holds) -> Iterator[None]:
    yield
    side.clock.advance(ASIDE_S + 1)
    assert holds.state() is None
