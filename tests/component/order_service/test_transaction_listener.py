from dataclasses import replace

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import OperationalError

from order_messages.states import TransactionKind, TransactionState
from order_service.adapters.failpoints import FailingTransactionListener, parse_failpoints
from order_service.adapters.order_store import SqlOrderStore
from order_service.domain.history import PROPERTY, Witness
from order_service.domain.life_cycle import OrderEvent
from order_service.domain.order import Order
from order_service.service_layer.attempt import Attempt, Outcome
from order_service.service_layer.order_store import OrderStore
from order_service.service_layer.placing import order_message
from order_service.service_layer.transaction_listener import DatabaseTransactionListener
from rocketmq_broker.client import LocalTransactionState
from rocketmq_broker.message import Message, MessageExt
from rocketmq_broker.message.properties import UNIQUE_KEY
from rocketmq_broker.message.record import Record, to_message
from rocketmq_broker.world import World
from service_runtime.database.database_errors import DatabaseUnavailable, OutcomeUnknown
from tests.component.order_service.conftest import DEADLINE_MS, ORDER_LIMIT_CENTS, a_later_order, a_listener_on, an_order

COMMIT, ROLLBACK, UNKNOWN = LocalTransactionState


def a_half_message(transaction_id: str = "transaction-1") -> Message:
    return order_message(an_order()).with_properties({UNIQUE_KEY: transaction_id})


def a_check_back(properties: bytes = b"UNIQ_KEY\x01transaction-1") -> MessageExt:
    record = Record(0, 0, 0, 0, 0, 0, 0, 0, bytes(8), 0, bytes(8), 0, 0, b"{}", b"orders", properties)
    return to_message(replace(record, size=len(record.encode())))


def test_an_order_within_the_limit_commits(listener: DatabaseTransactionListener, sqlite_store: SqlOrderStore) -> None:
    attempt = Attempt(an_order())
    assert listener.execute_local_transaction(a_half_message(), attempt) is LocalTransactionState.COMMIT_MESSAGE
    assert (attempt.outcome, attempt.transaction_id) == (Outcome.STORED, "transaction-1")
    assert sqlite_store.find_order("order-1") == an_order()


def test_an_order_above_the_limit_rolls_back_and_stays_so(
    listener: DatabaseTransactionListener, sqlite_store: SqlOrderStore
) -> None:
    attempt = Attempt(an_order(price_cents=ORDER_LIMIT_CENTS))
    assert listener.execute_local_transaction(a_half_message(), attempt) is LocalTransactionState.ROLLBACK_MESSAGE
    assert attempt.outcome is Outcome.REFUSED
    assert attempt.reason.endswith(f"exceeds the limit of {ORDER_LIMIT_CENTS // 100:,}.00")
    assert sqlite_store.find_order("order-1") is None
    assert sqlite_store.find_transaction("transaction-1") is TransactionState.ROLLED_BACK


def test_a_local_transaction_after_the_check_back_rolls_back(
    listener: DatabaseTransactionListener, sqlite_store: SqlOrderStore
) -> None:
    assert listener.check_local_transaction(a_check_back()) is ROLLBACK
    attempt = Attempt(an_order())
    assert listener.execute_local_transaction(a_half_message(), attempt) is LocalTransactionState.ROLLBACK_MESSAGE
    assert attempt.outcome is Outcome.DECIDED_BEFORE
    assert sqlite_store.find_order("order-1") is None


def test_check_back_rolls_back_an_order_whose_transaction_id_another_order_committed_under(
    listener: DatabaseTransactionListener, sqlite_store: SqlOrderStore
) -> None:
    listener.execute_local_transaction(a_half_message(), Attempt(an_order()))
    second = Attempt(an_order("order-2"))
    assert listener.execute_local_transaction(a_half_message(), second) is LocalTransactionState.ROLLBACK_MESSAGE
    first_check, second_check = (a_check_back(b"UNIQ_KEY\x01transaction-1\x02KEYS\x01order-%d" % number) for number in (1, 2))
    assert listener.check_local_transaction(second_check) is LocalTransactionState.ROLLBACK_MESSAGE
    assert listener.check_local_transaction(first_check) is LocalTransactionState.COMMIT_MESSAGE
    assert sqlite_store.find_transaction("transaction-1") is TransactionState.COMMITTED


def test_check_back_without_a_transaction_id_is_unknown(listener: DatabaseTransactionListener) -> None:
    assert listener.check_local_transaction(a_check_back(b"")) is LocalTransactionState.UNKNOWN


def a_half_message_of(store: SqlOrderStore) -> MessageExt:
    return a_check_back(f"UNIQ_KEY\x01transaction-1\x02KEYS\x01order-1\x02{PROPERTY}\x01{store.history.witness()}".encode())


def test_check_back_asks_the_database_each_time_until_the_order_is_paid(
    listener: DatabaseTransactionListener, sqlite_store: SqlOrderStore
) -> None:
    listener.execute_local_transaction(a_half_message(), Attempt(a_later_order()))
    question, in_time = a_check_back(), a_listener_on(sqlite_store, lambda: DEADLINE_MS - 1)
    answers = [in_time.check_local_transaction(question), in_time.check_local_transaction(question)]
    sqlite_store.change_unpaid("order-1", OrderEvent.PAY, DEADLINE_MS - 1)
    answers += [in_time.check_local_transaction(question), in_time.check_local_transaction(question)]
    assert answers == [UNKNOWN, UNKNOWN, COMMIT, COMMIT]


def test_check_back_asks_the_clock_each_time_until_the_deadline_has_passed(sqlite_store: SqlOrderStore) -> None:
    sqlite_store.store_order(a_later_order(), "transaction-1")
    times = iter([DEADLINE_MS - 1, DEADLINE_MS, DEADLINE_MS + 1])
    listener = a_listener_on(sqlite_store, lambda: next(times))
    assert [listener.check_local_transaction(a_check_back()) for _ in range(3)] == [UNKNOWN, ROLLBACK, ROLLBACK]


def test_check_back_asks_a_database_again_that_did_not_answer(
    listener: DatabaseTransactionListener, sqlite_store: SqlOrderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    sqlite_store.store_order(an_order(), "transaction-1")
    with monkeypatch.context() as patch:
        patch.setattr(SqlOrderStore, "settle", _BrokenStore(DatabaseUnavailable("gone")).settle)
        first = listener.check_local_transaction(a_check_back())
    assert [first, listener.check_local_transaction(a_check_back())] == [UNKNOWN, COMMIT]


def test_check_back_in_an_old_copy_is_unknown_until_the_copy_holds_what_the_half_message_names(
    listener: DatabaseTransactionListener, sqlite_store: SqlOrderStore, sqlite_engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    question = a_half_message_of(sqlite_store)
    with sqlite_engine.begin() as connection:
        epochs = connection.execute(text("SELECT * FROM epochs")).all()
        connection.execute(text("DELETE FROM epochs"))
    answers = [listener.check_local_transaction(question) for _ in range(2)]
    assert answers == [UNKNOWN, UNKNOWN]
    assert sqlite_store.find_transaction("transaction-1") is None
    assert "transaction-1 is answered UNKNOWN: the order database may be an old copy: this order database" in caplog.text
    with sqlite_engine.begin() as connection:
        connection.execute(text("INSERT INTO epochs VALUES (:epoch_id, :started_at_ms, :renewed_at_ms)"), epochs[0]._asdict())
    sqlite_store.store_order(an_order(), "transaction-1")
    assert listener.check_local_transaction(question) is COMMIT


class _BrokenStore(OrderStore):
    def __init__(self, error: Exception) -> None:
        self.error = error

    def store_order(self, order: Order, transaction_id: str) -> None:
        raise self.error

    def settle(
        self,
        transaction_id: str,
        order_id: str | None = None,
        kind: TransactionKind = TransactionKind.ORDER,
        witness: Witness | None = None,
    ) -> TransactionState:
        raise self.error


@pytest.mark.parametrize("error", [DatabaseUnavailable("gone"), OutcomeUnknown("gone at COMMIT")])
def test_check_back_is_unknown_while_the_database_is_in_trouble(error: Exception) -> None:
    assert a_listener_on(_BrokenStore(error)).check_local_transaction(a_check_back()) is LocalTransactionState.UNKNOWN


@pytest.mark.parametrize(
    ("error", "decided"),
    [(OutcomeUnknown("gone"), (UNKNOWN, Outcome.UNKNOWN)), (DatabaseUnavailable("gone"), (ROLLBACK, Outcome.UNAVAILABLE))],
)
def test_a_commit_of_unknown_outcome_is_left_to_check_back_and_a_database_that_wrote_nothing_rolls_back(
    error: Exception, decided: tuple[LocalTransactionState, Outcome]
) -> None:
    attempt = Attempt(an_order())
    state = a_listener_on(_BrokenStore(error)).execute_local_transaction(a_half_message(), attempt)
    assert (state, attempt.outcome) == decided


def test_a_refused_order_rolls_back_although_the_marker_cannot_be_written() -> None:
    attempt = Attempt(an_order(price_cents=ORDER_LIMIT_CENTS))
    state = a_listener_on(_BrokenStore(DatabaseUnavailable("gone"))).execute_local_transaction(a_half_message(), attempt)
    assert state is LocalTransactionState.ROLLBACK_MESSAGE


def test_what_is_not_an_attempt_is_not_run(listener: DatabaseTransactionListener) -> None:
    with pytest.raises(TypeError):
        listener.execute_local_transaction(a_half_message(), None)


def test_the_failpoint_ends_the_process_after_every_nth_commit_and_only_then(sqlite_store: SqlOrderStore) -> None:
    ends: list[int] = []
    (failpoints,) = parse_failpoints("exit-after-local-commit:every=2")
    listener = FailingTransactionListener(
        a_listener_on(sqlite_store), failpoints, lambda *_: None, wait=World().sleep, end_process=lambda: ends.append(number)
    )
    for number in range(1, 6):
        price_cents = ORDER_LIMIT_CENTS if number == 1 else 100
        order = an_order(f"order-{number}", price_cents=price_cents)
        attempt = Attempt(a_later_order(order.order_id) if number == 3 else order)
        listener.execute_local_transaction(a_half_message(f"transaction-{number}"), attempt)
    assert ends == [3, 5]
    assert sqlite_store.find_order("order-3") is not None


def test_a_database_error_outside_the_store_does_not_pass_as_a_decision() -> None:
    broken = a_listener_on(_BrokenStore(OperationalError("x", None, Exception("y"))))
    with pytest.raises(OperationalError):
        broken.execute_local_transaction(a_half_message(), Attempt(an_order()))
