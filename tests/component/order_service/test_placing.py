"""Tests of placing an order while its local transaction still runs in another thread."""

from collections.abc import Callable
from uuid import uuid4

import pytest
from sqlalchemy import Engine

from order_messages.states import TransactionState
from order_service.adapters.order_store import SqlOrderStore
from order_service.domain.order import Item, Order
from order_service.service_layer.attempt import Attempt, Outcome, TransactionFailed
from order_service.service_layer.placing import OrderPlacing, Placed
from order_service.service_layer.transaction_listener import DatabaseTransactionListener
from rocketmq_broker.client import LocalTransactionState
from rocketmq_broker.message import Message
from rocketmq_broker.message.properties import UNIQUE_KEY
from rocketmq_broker.world import World
from tests.component.order_service.conftest import a_listener_on, an_order


class Sender:
    """A sender that calls the function of the test."""

    def __init__(self, send: Callable[[Message, Attempt], Outcome]) -> None:
        self.send_in_transaction = send


def place(store: SqlOrderStore, send: Callable[[Message, Attempt], Outcome]) -> Placed:
    placing = OrderPlacing(store, Sender(send), payment_deadline_ms=600_000, now_ms=lambda: 1, new_uuid=uuid4)
    return placing.place(customer="ada", items=(Item("tea", 1, 250),), currency="EUR", idempotency_key=None)


def test_an_answer_after_a_time_out_is_not_changed_by_the_local_transaction_that_goes_on(sqlite_store: SqlOrderStore) -> None:
    attempts: list[Attempt] = []

    def time_out(_: Message, attempt: Attempt) -> Outcome:
        attempts.append(attempt)
        attempt.begin("transaction-1")
        return attempt.outcome

    placed = place(sqlite_store, time_out)
    attempts[0].conclude(Outcome.STORED)
    assert (placed.state, placed.transaction_id) == (TransactionState.UNKNOWN, "transaction-1")
    assert attempts[0].outcome is Outcome.STORED


def test_a_time_out_before_the_local_transaction_began_does_not_keep_it_from_telling_its_outcome(
    sqlite_store: SqlOrderStore,
) -> None:
    attempts: list[Attempt] = []

    def time_out(_: Message, attempt: Attempt) -> Outcome:
        attempts.append(attempt)
        return Outcome.UNKNOWN

    assert place(sqlite_store, time_out).state is TransactionState.UNKNOWN
    attempts[0].begin("transaction-1")
    attempts[0].conclude(Outcome.REFUSED, "too dear")
    assert (attempts[0].outcome, attempts[0].reason) == (Outcome.REFUSED, "too dear")


def test_a_key_whose_order_cannot_be_found_is_said_to_be_in_use(sqlite_store: SqlOrderStore) -> None:
    def refuse(_: Message, attempt: Attempt) -> Outcome:
        attempt.begin("transaction-1")
        attempt.conclude(Outcome.KEY_TAKEN)
        return attempt.outcome

    with pytest.raises(TransactionFailed, match="another order has this idempotency key") as raised:
        place(sqlite_store, refuse)
    assert (raised.value.problem.status, raised.value.problem.title) == (409, "Idempotency key in use")


def test_a_local_transaction_that_ended_with_a_mistake_is_not_told_as_nothing_ordered(
    sqlite_store: SqlOrderStore, sqlite_engine: Engine
) -> None:
    class Mistaken(SqlOrderStore):
        def store_order(self, order: Order, transaction_id: str) -> None:
            sqlite_store.store_order(order, transaction_id)
            raise ZeroDivisionError

    listener = a_listener_on(Mistaken(sqlite_engine, World()))

    def send(message: Message, attempt: Attempt) -> Outcome:
        with pytest.raises(ZeroDivisionError):
            listener.execute_local_transaction(message.with_properties({UNIQUE_KEY: "transaction-1"}), attempt)
        return attempt.outcome

    assert place(sqlite_store, send).state is TransactionState.UNKNOWN
    assert sqlite_store.find_transaction("transaction-1") is TransactionState.COMMITTED


@pytest.mark.parametrize("step", [lambda attempt: attempt.begin("2"), lambda attempt: attempt.conclude(Outcome.REFUSED)])
def test_what_is_concluded_stays_so(step: Callable[[Attempt], None]) -> None:
    attempt = Attempt(an_order())
    attempt.begin("1")
    attempt.conclude(Outcome.STORED)
    with pytest.raises(RuntimeError, match="STORED"):
        step(attempt)
    assert (attempt.outcome, attempt.transaction_id) == (Outcome.STORED, "1")


def test_an_attempt_that_is_given_twice_is_not_run_twice(
    listener: DatabaseTransactionListener, sqlite_store: SqlOrderStore
) -> None:
    attempt = Attempt(an_order())
    message = Message.of("orders", b"{}").with_properties({UNIQUE_KEY: "transaction-1"})
    assert listener.execute_local_transaction(message, attempt) is LocalTransactionState.COMMIT_MESSAGE
    with pytest.raises(RuntimeError):
        listener.execute_local_transaction(message.with_properties({UNIQUE_KEY: "transaction-2"}), attempt)
    assert sqlite_store.find_transaction("transaction-2") is None
