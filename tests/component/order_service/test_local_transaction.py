"""Tests that an order, its items and its transaction row are written together or not at all.

On PostgreSQL one statement writes all of them.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import Engine, event, func, select, text

from order_messages.states import TransactionState
from order_service.adapters.local_transaction import ITEMS, ORDERS, TRANSACTIONS
from order_service.adapters.order_store import SqlOrderStore
from order_service.domain.order import Item, Order
from rocketmq_broker.world import World
from service_runtime.database.database_errors import DatabaseUnavailable, OutcomeUnknown
from service_runtime.database.engine import create_database_engine
from tests.component.order_service.conftest import a_later_order, an_order, are_stored_at_once

ON_POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


def counts(engine: Engine) -> list[int]:
    with engine.connect() as connection:
        return [
            connection.execute(select(func.count()).select_from(table)).scalar_one() for table in (TRANSACTIONS, ORDERS, ITEMS)
        ]


def of_many_items(order_id: str = "order-1") -> Order:
    items = tuple(Item(f"a {'ü' * number} 'quoted' {{brace}} %s \\", number + 1, 10**8 - number) for number in range(30))
    return replace(an_order(order_id), items=items)


def test_all_rows_are_there_and_the_items_keep_their_order(store: SqlOrderStore, engine: Engine) -> None:
    for order in (of_many_items(), a_later_order("order-2", key="key-1")):
        store.store_order(order, f"transaction of {order.order_id}")
        assert store.find_order(order.order_id) == order
    assert counts(engine) == [2, 2, 32]
    assert store.find_transaction("transaction of order-2") is TransactionState.PENDING
    assert store.why_unready() is None


def test_of_many_that_come_at_once_one_is_written(store: SqlOrderStore, engine: Engine) -> None:
    stored = are_stored_at_once(lambda number: store.store_order(an_order(f"order-{number}"), "transaction-1"), 4)
    assert sorted(stored) == [False, False, False, True]
    assert counts(engine) == [1, 1, 2]


@ON_POSTGRESQL
def test_it_is_one_statement(store: SqlOrderStore, engine: Engine) -> None:
    statements: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda _1, _2, statement, *_: statements.append(statement))
    event.listen(engine, "commit", lambda _: statements.append("COMMIT"))
    store.store_order(an_order(), "transaction-1")
    (statement,) = statements
    assert statement.count("INSERT") == 3


@ON_POSTGRESQL
def test_a_wait_for_a_lock_that_becomes_too_long_has_written_nothing(store: SqlOrderStore, engine: Engine) -> None:
    impatient = create_database_engine(f"{engine.url.render_as_string()}?options=-c%20lock_timeout%3D50")
    with engine.connect() as other:
        other.exec_driver_sql("LOCK TABLE order_items IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(DatabaseUnavailable, match="lock timeout"):
            SqlOrderStore(impatient, World()).store_order(an_order(), "transaction-1")
        other.rollback()
    impatient.dispose()
    assert counts(engine) == [0, 0, 0]


@ON_POSTGRESQL
def test_a_connection_that_ends_meanwhile_leaves_the_outcome_unknown(store: SqlOrderStore, engine: Engine) -> None:
    with engine.connect() as other, ThreadPoolExecutor(1) as threads:
        other.exec_driver_sql("LOCK TABLE order_items IN ACCESS EXCLUSIVE MODE")
        waiting = threads.submit(store.store_order, an_order(), "transaction-1")
        while not ended_waiting_connections(engine):
            assert not waiting.done()
            time.sleep(0.01)
        with pytest.raises(OutcomeUnknown, match="terminating connection"):
            waiting.result(30)
        other.rollback()
    assert counts(engine) == [0, 0, 0]
    store.store_order(an_order(), "transaction-1")


def ended_waiting_connections(engine: Engine) -> int:
    waiting = "wait_event_type = 'Lock' AND datname = current_database()"
    with engine.connect() as connection:
        return len(connection.execute(text(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {waiting}")).all())


@ON_POSTGRESQL
def test_a_server_that_cannot_be_reached_was_sent_nothing(engine: Engine) -> None:
    nowhere = create_database_engine(engine.url.set(port=1).render_as_string())
    with pytest.raises(DatabaseUnavailable):
        SqlOrderStore(nowhere, World()).store_order(an_order(), "transaction-1")
