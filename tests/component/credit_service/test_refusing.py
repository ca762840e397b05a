"""Orders that would become dead letters, where the setting has them cancelled instead."""

from dataclasses import dataclass, field, replace

import pytest

from credit_service.adapters.ledger import Ledger
from credit_service.domain.credit import CreditOutcome
from credit_service.service_layer.order_listener import CreditingListener
from credit_service.service_layer.refusing import RefusalNotReported, Refusing
from order_messages import order_cancelled
from order_messages.order_cancelled import OrderCancelled
from rocketmq_broker.client import ConsumeContext, ConsumeStatus
from rocketmq_broker.message import MessageExt
from service_runtime.database.database_errors import DatabaseUnavailable
from tests.component.credit_service.conftest import a_context, a_credit, an_order
from tests.unit.credit_service.test_order_listener import CreditingInMemory

MOST: int = 16
FAILS: dict[str, CreditOutcome | None] = {"1": None}


@dataclass(slots=True)
class Reporter:
    """Records reports; the first `failures` calls fail."""

    failures: int = 0
    reported: list[tuple[str, str]] = field(default_factory=list)

    def report(self, order_id: str, reason: str) -> None:
        if self.failures:
            self.failures -= 1
            raise RefusalNotReported("the broker is away")
        self.reported.append((order_id, reason))


def no_hold(_: ConsumeContext, __: float) -> None:
    pytest.fail("nothing had to be held")


def delivered(times: int, order_id: str = "1") -> MessageExt:
    return replace(an_order(order_id), reconsume_times=times)


def test_an_order_whose_task_fails_is_refused_at_its_last_delivery_and_not_before(sqlite_ledger: Ledger) -> None:
    reporter, context = Reporter(), a_context()
    listener = CreditingListener(CreditingInMemory(FAILS), Refusing(sqlite_ledger, reporter, MOST, no_hold))
    listener([delivered(MOST - 1)], context)
    assert (context.postponed, reporter.reported) == ({0: None}, [])
    last = a_context()
    assert listener([delivered(MOST)], last) is ConsumeStatus.CONSUME_SUCCESS
    assert (last.postponed, reporter.reported) == ({}, [("1", "its task failed at each of 17 deliveries")])
    assert [entry.amount_cents for entry in sqlite_ledger.find_order("1")] == [0, 0]


def test_an_order_that_the_ledger_does_not_take_is_refused_at_once(sqlite_ledger: Ledger) -> None:
    reporter, context = Reporter(), a_context()
    crediting = CreditingInMemory({"1": CreditOutcome.IMPOSSIBLE})
    CreditingListener(crediting, Refusing(sqlite_ledger, reporter, MOST, no_hold))([delivered(0)], context)
    assert (context.postponed, reporter.reported) == ({}, [("1", "the ledger does not accept it")])


def test_without_the_setting_both_go_the_way_of_the_dead_letters() -> None:
    crediting, context = CreditingInMemory({"1": None, "2": CreditOutcome.IMPOSSIBLE}), a_context()
    CreditingListener(crediting)([replace(delivered(MOST), queue_offset=1), replace(delivered(0, "2"), queue_offset=2)], context)
    assert context.postponed == {1: None, 2: -1}


def test_a_service_that_died_before_it_told_tells_after_the_redelivery(sqlite_ledger: Ledger) -> None:
    sqlite_ledger.annul(a_credit("1"))
    reporter, context = Reporter(), a_context()
    crediting = CreditingInMemory({"1": CreditOutcome.REFUSED})
    CreditingListener(crediting, Refusing(sqlite_ledger, reporter, MOST, no_hold))([delivered(3)], context)
    assert (context.postponed, reporter.reported) == ({}, [("1", "it was refused before")])


def test_an_outage_of_broker_or_database_holds_the_order_and_costs_it_nothing(sqlite_ledger: Ledger) -> None:
    pauses: list[float] = []

    class LedgerThatIsAwayOnce:
        def annul(self, credit: object) -> bool:
            if not pauses:
                raise DatabaseUnavailable("away")
            return sqlite_ledger.annul(a_credit("1"))

    reporter, context = Reporter(failures=1), a_context()
    refusing = Refusing(LedgerThatIsAwayOnce(), reporter, MOST, lambda _, seconds: pauses.append(seconds))
    CreditingListener(CreditingInMemory(FAILS), refusing)([delivered(MOST)], context)
    assert (pauses, context.postponed, len(reporter.reported)) == ([0.5, 1.0], {}, 1)


def test_what_cannot_be_refused_goes_to_the_dead_letters_for_a_person(sqlite_ledger: Ledger) -> None:
    sqlite_ledger.credit([a_credit("1", amount_cents=100)])
    reporter, context = Reporter(), a_context()
    refusing = Refusing(sqlite_ledger, reporter, MOST, no_hold)
    crediting = CreditingInMemory({"1": CreditOutcome.IMPOSSIBLE, "2": CreditOutcome.CONFLICTING})
    CreditingListener(crediting, refusing)(
        [replace(delivered(0), queue_offset=1), replace(delivered(0, "2"), queue_offset=2)], context
    )
    assert (context.postponed, reporter.reported) == ({1: -1, 2: -1}, [])


def test_a_reversal_is_never_refused(sqlite_ledger: Ledger) -> None:
    body = OrderCancelled(
        version=1, order_id="1", customer="ada", total_cents=2599, currency="EUR", cancelled_at_ms=1, reason="by the customer"
    )
    message = replace(delivered(MOST), topic=order_cancelled.TOPIC, body=body.encode())
    reporter, context = Reporter(), a_context()
    CreditingListener(CreditingInMemory(FAILS), Refusing(sqlite_ledger, reporter, MOST, no_hold))([message], context)
    assert (context.postponed, reporter.reported) == ({0: None}, [])
