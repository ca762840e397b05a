"""Tests of an order's payment, cancellation and deadline, in sequence and concurrently."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Engine, text

from order_messages.states import OrderState, TransactionKind, TransactionState
from order_service.adapters.order_store import SqlOrderStore
from order_service.domain.life_cycle import OrderEvent
from order_service.domain.order import Order
from order_service.service_layer.attempt import Outcome, TransactionFailed
from tests.component.order_service.conftest import DEADLINE_MS, a_cancellation, a_later_order, an_order, are_stored_at_once

COMMITTED, ROLLED_BACK, PENDING = TransactionState.COMMITTED, TransactionState.ROLLED_BACK, TransactionState.PENDING
IN_TIME = DEADLINE_MS - 1


@pytest.fixture
def later(store: SqlOrderStore) -> SqlOrderStore:
    """Returns a store with an order that awaits its payment."""
    store.store_order(a_later_order(), "transaction-1")
    return store


def state_of(order: Order | None) -> OrderState | None:
    return None if order is None else order.state


def test_an_order_that_awaits_its_payment_is_pending_however_often_it_is_asked_for(later: SqlOrderStore) -> None:
    assert later.find_order("order-1") == a_later_order()
    assert [later.settle("transaction-1") for _ in range(3)] == [PENDING] * 3
    assert later.expire_if_overdue("transaction-1", IN_TIME) is PENDING


def test_a_paid_order_is_committed_and_paying_again_changes_nothing(later: SqlOrderStore) -> None:
    paid = later.change_unpaid("order-1", OrderEvent.PAY, IN_TIME)
    assert paid is not None
    assert (paid.state, paid.paid_at_ms) == (OrderState.PAID, IN_TIME)
    assert later.change_unpaid("order-1", OrderEvent.PAY, DEADLINE_MS + 1) == paid == later.find_order("order-1")
    assert later.settle("transaction-1") is COMMITTED
    assert later.expire_if_overdue("transaction-1", DEADLINE_MS + 1) is COMMITTED


def test_an_unpaid_order_expires_with_its_deadline(later: SqlOrderStore) -> None:
    assert later.expire_if_overdue("transaction-1", DEADLINE_MS) is ROLLED_BACK
    assert later.settle("transaction-1") is ROLLED_BACK
    assert state_of(later.change_unpaid("order-1", OrderEvent.PAY, IN_TIME)) is OrderState.EXPIRED
    assert later.settle("transaction-1") is ROLLED_BACK


def test_a_payment_after_the_deadline_expires_the_order(later: SqlOrderStore) -> None:
    assert state_of(later.change_unpaid("order-1", OrderEvent.PAY, DEADLINE_MS)) is OrderState.EXPIRED
    assert later.find_transaction("transaction-1") is ROLLED_BACK


def test_an_unpaid_order_that_is_cancelled_is_rolled_back(later: SqlOrderStore) -> None:
    cancelled = later.change_unpaid("order-1", OrderEvent.CANCEL, IN_TIME, "no longer wanted")
    assert cancelled is not None
    assert (cancelled.state, cancelled.ended_at_ms) == (OrderState.CANCELLED, IN_TIME)
    assert cancelled.ended_because == "no longer wanted"
    assert later.settle("transaction-1") is ROLLED_BACK
    assert state_of(later.change_unpaid("order-1", OrderEvent.PAY, IN_TIME)) is OrderState.CANCELLED


def test_an_order_that_was_told_is_not_cancelled_without_a_second_transaction(store: SqlOrderStore) -> None:
    store.store_order(an_order(), "transaction-1")
    assert state_of(store.change_unpaid("order-1", OrderEvent.CANCEL, IN_TIME, "why not")) is OrderState.PLACED
    assert state_of(store.change_unpaid("order-1", OrderEvent.PAY, IN_TIME)) is OrderState.PLACED


def test_what_nobody_ordered_is_neither_paid_nor_cancelled(store: SqlOrderStore) -> None:
    assert [store.change_unpaid("none", event, 1, "x") for event in (OrderEvent.PAY, OrderEvent.CANCEL)] == [None, None]
    with pytest.raises(TransactionFailed, match="unknown"):
        store.store_cancellation(a_cancellation(), "transaction-2")
    assert store.find_transaction("transaction-2") is None


@pytest.mark.parametrize("is_paid_later", [False, True])
def test_a_cancellation_is_committed_once_and_leaves_the_order_s_own_transaction_alone(
    store: SqlOrderStore, is_paid_later: bool
) -> None:
    store.store_order(a_later_order() if is_paid_later else an_order(), "transaction-1")
    store.change_unpaid("order-1", OrderEvent.PAY, IN_TIME)
    store.store_cancellation(a_cancellation(), "transaction-2")
    found = store.find_order("order-1")
    assert found is not None
    assert (found.state, found.ended_because) == (OrderState.CANCELLED, "by the customer")
    with pytest.raises(TransactionFailed, match="CANCELLED"):
        store.store_cancellation(a_cancellation(), "transaction-3")
    states = [store.settle(f"transaction-{number}", "order-1") for number in (1, 2, 3)]
    assert states == [COMMITTED, COMMITTED, ROLLED_BACK]
    assert {one.kind: one.transaction_id for one in store.find_transactions("order-1")} == {
        TransactionKind.ORDER: "transaction-1",
        TransactionKind.CANCELLATION: "transaction-2",
    }


def test_a_late_cancellation_cannot_slip_in_behind_a_check_back(store: SqlOrderStore) -> None:
    store.store_order(an_order(), "transaction-1")
    assert store.settle("transaction-2", "order-1", TransactionKind.CANCELLATION) is ROLLED_BACK
    with pytest.raises(TransactionFailed, match=Outcome.DECIDED_BEFORE.meaning):
        store.store_cancellation(a_cancellation(), "transaction-2")
    assert state_of(store.find_order("order-1")) is OrderState.PLACED


def test_transactions_say_of_which_kind_they_are(store: SqlOrderStore, engine: Engine) -> None:
    store.store_order(an_order(), "transaction-1")
    store.store_cancellation(a_cancellation(), "transaction-2")
    store.settle("transaction-3", "order-1", TransactionKind.CANCELLATION)
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT transaction_id, kind, state, order_id FROM transactions ORDER BY 1")).all()
    assert [tuple(row) for row in rows] == [
        ("transaction-1", "order", "COMMITTED", "order-1"),
        ("transaction-2", "cancellation", "COMMITTED", "order-1"),
        ("transaction-3", "cancellation", "ROLLED_BACK", None),
    ]


def test_payment_cancellation_deadline_and_check_back_at_once_agree_on_one_outcome(store: SqlOrderStore) -> None:
    for number in range(12):
        store.store_order(a_later_order(f"order-{number}"), f"transaction-{number}")
    deeds: list[Callable[[int], object]] = [
        lambda number: store.change_unpaid(f"order-{number}", OrderEvent.PAY, IN_TIME),
        lambda number: store.change_unpaid(f"order-{number}", OrderEvent.CANCEL, IN_TIME, "changed my mind"),
        lambda number: store.expire_if_overdue(f"transaction-{number}", DEADLINE_MS),
        lambda number: store.settle(f"transaction-{number}"),
    ]
    start = threading.Barrier(len(deeds))

    def run(deed: Callable[[int], object]) -> None:
        start.wait()
        for number in range(12):
            deed(number)

    with ThreadPoolExecutor(len(deeds)) as threads:
        for done in [threads.submit(run, deed) for deed in deeds]:
            done.result()
    for number in range(12):
        order, transaction = store.find_order(f"order-{number}"), store.settle(f"transaction-{number}")
        assert order is not None
        assert order.state in (OrderState.PAID, OrderState.CANCELLED, OrderState.EXPIRED)
        assert transaction is (COMMITTED if order.state is OrderState.PAID else ROLLED_BACK)


def test_of_many_cancellations_at_once_one_is_committed(store: SqlOrderStore) -> None:
    store.store_order(an_order(), "transaction-0")
    stored = are_stored_at_once(lambda number: store.store_cancellation(a_cancellation(), f"cancellation-{number}"), 5)
    assert stored.count(True) == 1
