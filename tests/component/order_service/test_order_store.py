import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Engine, event, text
from sqlalchemy.exc import OperationalError

from order_messages.states import TransactionState
from order_service.adapters.order_store import SqlOrderStore
from order_service.service_layer.attempt import Outcome, TransactionFailed
from service_runtime.database.database_errors import DatabaseUnavailable, OutcomeUnknown
from tests.component.order_service.conftest import an_order, are_stored_at_once


def test_an_order_is_found_as_it_was_committed(store: SqlOrderStore) -> None:
    order = an_order(key="key-1")
    store.store_order(order, "transaction-1")
    assert store.find_order("order-1") == order
    assert store.find_order_by_key("ada", "key-1") == order
    assert store.find_transaction("transaction-1") is store.settle("transaction-1") is TransactionState.COMMITTED
    assert [one.transaction_id for one in store.find_transactions("order-1")] == ["transaction-1"]


def test_check_back_rolls_back_what_it_does_not_find_and_says_so_ever_after(store: SqlOrderStore) -> None:
    assert store.find_transaction("transaction-1") is None
    assert store.settle("transaction-1") is TransactionState.ROLLED_BACK
    assert store.settle("transaction-1") is TransactionState.ROLLED_BACK
    assert store.find_transaction("transaction-1") is TransactionState.ROLLED_BACK


def test_a_late_local_transaction_cannot_slip_in_behind_a_check_back(store: SqlOrderStore) -> None:
    store.settle("transaction-1")
    with pytest.raises(TransactionFailed, match=Outcome.DECIDED_BEFORE.meaning):
        store.store_order(an_order(), "transaction-1")
    assert store.find_order("order-1") is None
    assert store.find_transaction("transaction-1") is TransactionState.ROLLED_BACK


def test_of_two_orders_with_one_idempotency_key_the_second_leaves_no_trace(store: SqlOrderStore) -> None:
    store.store_order(an_order("order-1", key="key-1"), "transaction-1")
    with pytest.raises(TransactionFailed, match=Outcome.KEY_TAKEN.meaning):
        store.store_order(an_order("order-2", key="key-1"), "transaction-2")
    assert store.find_order("order-2") is None
    assert store.find_transaction("transaction-2") is None


def test_an_idempotency_key_is_one_customer_s_own(store: SqlOrderStore) -> None:
    store.store_order(an_order("order-1", customer="ada", key="key-1"), "transaction-1")
    store.store_order(an_order("order-2", customer="bob", key="key-1"), "transaction-2")
    found = [store.find_order_by_key(customer, "key-1") for customer in ("ada", "bob", "eve")]
    assert [order and order.order_id for order in found] == ["order-1", "order-2", None]


def test_pages_hold_every_order_of_the_customer_once_the_newest_first(store: SqlOrderStore) -> None:
    for number in range(7):
        store.store_order(an_order(f"order-{number}"), f"transaction-{number}")
    store.store_order(an_order("other", customer="bob"), "transaction-other")
    seen: list[str] = []
    before: int | None = None
    while True:
        page, before = store.list_orders("ada", limit=3, before=before)
        seen += [order.order_id for order in page]
        if before is None:
            break
    assert seen == [f"order-{number}" for number in reversed(range(7))]


def test_a_customer_without_orders_gets_an_empty_last_page(store: SqlOrderStore) -> None:
    assert store.list_orders("nobody", limit=10, before=None) == ([], None)


def test_local_transaction_and_check_back_racing_agree_on_one_outcome(store: SqlOrderStore) -> None:
    transactions = [f"transaction-{number}" for number in range(16)]
    start = threading.Barrier(4)

    def commit(mine: list[str]) -> dict[str, bool]:
        start.wait()
        return {transaction: _is_committed(store, transaction) for transaction in mine}

    def check(mine: list[str]) -> dict[str, TransactionState]:
        start.wait()
        return {transaction: store.settle(transaction) for transaction in mine}

    with ThreadPoolExecutor(4) as threads:
        commits = [threads.submit(commit, transactions[half::2]) for half in (0, 1)]
        checks = [threads.submit(check, transactions[half::2]) for half in (0, 1)]
        committed = {transaction: is_done for future in commits for transaction, is_done in future.result().items()}
        checked = {transaction: state for future in checks for transaction, state in future.result().items()}

    for transaction in transactions:
        assert committed[transaction] == (checked[transaction] is TransactionState.COMMITTED)
        assert committed[transaction] == (store.find_order(f"order of {transaction}") is not None)


def test_one_idempotency_key_used_by_many_at_once_places_one_order(store: SqlOrderStore) -> None:
    stored = are_stored_at_once(
        lambda number: store.store_order(an_order(f"order-{number}", key="same"), f"transaction-{number}"), 6
    )
    assert stored.count(True) == 1
    assert len(store.list_orders("ada", limit=10, before=None)[0]) == 1


def test_a_commit_without_an_answer_leaves_the_outcome_unknown(store: SqlOrderStore, engine: Engine) -> None:
    def lose_connection(*_: object) -> None:
        raise OperationalError("COMMIT", None, Exception("server closed the connection unexpectedly"))

    is_sqlite = engine.dialect.name == "sqlite"
    moment = "commit" if is_sqlite else "after_cursor_execute"  # PostgreSQL commits with the statement
    event.listen(engine, moment, lose_connection)
    with pytest.raises(OutcomeUnknown, match="server closed the connection"):
        store.store_order(an_order(), "transaction-1")
    event.remove(engine, moment, lose_connection)
    assert store.settle("transaction-1") is (TransactionState.ROLLED_BACK if is_sqlite else TransactionState.COMMITTED)


def test_a_statement_that_fails_has_written_nothing(store: SqlOrderStore, engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE order_items RENAME TO gone"))
    with pytest.raises(DatabaseUnavailable):
        store.store_order(an_order(), "transaction-1")
    assert store.find_transaction("transaction-1") is None


def _is_committed(store: SqlOrderStore, transaction_id: str) -> bool:
    threading.Event().wait(random.random() / 500)
    try:
        store.store_order(an_order(f"order of {transaction_id}"), transaction_id)
    except TransactionFailed:
        return False
    return True


def test_a_violated_constraint_that_is_no_idempotency_key_is_not_told_as_one(store: SqlOrderStore, engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("CREATE UNIQUE INDEX one_order_of_a_size ON orders (total_cents)"))
    store.store_order(an_order("order-1", key="key-1"), "transaction-1")
    with pytest.raises(DatabaseUnavailable, match=r"one_order_of_a_size|total_cents"):
        store.store_order(an_order("order-2", key="key-2"), "transaction-2")
    assert store.find_transaction("transaction-2") is None


def test_an_order_id_that_is_taken_is_not_told_as_an_idempotency_key(store: SqlOrderStore) -> None:
    store.store_order(an_order("order-1", key="key-1"), "transaction-1")
    with pytest.raises(DatabaseUnavailable):
        store.store_order(an_order("order-1", key="key-2"), "transaction-2")


def test_a_violated_constraint_of_the_transactions_is_not_told_as_a_decision(store: SqlOrderStore, engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("CREATE UNIQUE INDEX one_of_a_state ON transactions (state)"))
    store.store_order(an_order("order-1"), "transaction-1")
    with pytest.raises(DatabaseUnavailable):
        store.store_order(an_order("order-2"), "transaction-2")
    assert store.find_transaction("transaction-2") is None


def test_a_check_back_that_cannot_leave_its_marker_has_settled_nothing(store: SqlOrderStore, engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("CREATE UNIQUE INDEX one_of_a_state ON transactions (state)"))
    store.settle("transaction-1")
    with pytest.raises(DatabaseUnavailable):
        store.settle("transaction-2")
    assert store.find_transaction("transaction-2") is None
