"""Tests that the commit watch reports a violated promise. Each handwritten row violates exactly one promise."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from lab.simulation.judges.commit_watch import CREDITS, ORDERS, STOCK, CommitWatch
from lab.simulation.judges.violation import Promise


class Ledgers:
    """A database with the columns that the watch reads."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection, self.watch = connection, CommitWatch()
        connection.executescript(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, order_id);"
            "CREATE TABLE transactions (transaction_id PRIMARY KEY, state);"
            "CREATE TABLE credits (id INTEGER PRIMARY KEY, order_id, kind, customer, points);"
            "CREATE TABLE balances (customer PRIMARY KEY, points); CREATE TABLE shipments (order_id PRIMARY KEY, state);"
            "CREATE TABLE rocketmq_inbox (consumer, message_key, topic, properties, status)"
        )

    def does(self, database: str, *statements: str) -> list[Promise]:
        for statement in statements:
            self.connection.execute(statement)
        return [Promise(one.promise) for one in self.watch.observe_commit(database, self.connection)]

    def credit(self, order_id: str, balance: int, kind: str = "credit", points: int = 12) -> list[Promise]:
        return self.does(
            CREDITS,
            f"INSERT INTO credits VALUES (NULL, '{order_id}', '{kind}', 'ada', {points})",
            f"INSERT OR REPLACE INTO balances VALUES ('ada', {balance})",
        )


@pytest.fixture
def ledgers() -> Iterator[Ledgers]:
    with closing(sqlite3.connect(":memory:")) as connection:
        yield Ledgers(connection)


def place(ledgers: Ledgers, order_id: str, state: str = "COMMITTED") -> list[Promise]:
    return ledgers.does(
        ORDERS, f"INSERT INTO orders VALUES (NULL, '{order_id}')", f"INSERT INTO transactions VALUES ('T-{order_id}', '{state}')"
    )


def test_right_rows_break_no_promise(ledgers: Ledgers) -> None:
    assert place(ledgers, "a") == place(ledgers, "b", "PENDING") == []
    assert ledgers.does(ORDERS, "UPDATE transactions SET state = 'COMMITTED' WHERE transaction_id = 'T-b'") == []
    assert ledgers.credit("a", 12) == ledgers.credit("b", 24) == ledgers.credit("a", 12, "reversal", -12) == []
    assert ledgers.does(STOCK, "INSERT INTO shipments VALUES ('a', 'SHIPPED')") == []
    assert ledgers.watch.observe_commit("sessions", ledgers.connection) == []


def test_a_credit_needs_an_order(ledgers: Ledgers) -> None:
    assert ledgers.credit("a", 12) == [Promise.CREDIT_HAS_ORDER]


def test_a_second_credit_is_found_at_once(ledgers: Ledgers) -> None:
    place(ledgers, "a")
    ledgers.credit("a", 12)
    assert ledgers.credit("a", 24) == [Promise.ORDER_HAS_CREDIT]


def test_a_balance_is_the_sum_of_its_entries_and_told_once(ledgers: Ledgers) -> None:
    place(ledgers, "a")
    assert ledgers.credit("a", 13) == [Promise.BALANCE_IS_SUM]
    assert ledgers.does(CREDITS) == []


def test_a_balance_without_entries_is_wrong(ledgers: Ledgers) -> None:
    assert ledgers.does(CREDITS, "INSERT INTO balances VALUES ('bob', 1)") == [Promise.BALANCE_IS_SUM]


@pytest.mark.parametrize(("before", "after"), [("COMMITTED", "ROLLED_BACK"), ("ROLLED_BACK", "COMMITTED")])
def test_a_transaction_keeps_its_outcome(ledgers: Ledgers, before: str, after: str) -> None:
    place(ledgers, "a", before)
    assert ledgers.does(ORDERS, f"UPDATE transactions SET state = '{after}'") == [Promise.ONE_OUTCOME]


def store(ledgers: Ledgers, database: str, group: str, topic: str = "orders") -> list[Promise]:
    return ledgers.does(database, f"""INSERT INTO rocketmq_inbox VALUES ('{group}', 'key', '{topic}', '{{"KEYS":"a"}}', 'NEW')""")


@pytest.mark.parametrize(("database", "group"), [(CREDITS, "credit_service"), (STOCK, "inventory_service")])
def test_a_message_leaves_an_inbox_only_with_the_rows_that_it_demands(ledgers: Ledgers, database: str, group: str) -> None:
    place(ledgers, "a")
    assert store(ledgers, database, group) == []
    assert ledgers.does(database, "UPDATE rocketmq_inbox SET status = 'PARKED'") == []
    assert ledgers.does(database, "DELETE FROM rocketmq_inbox") == [Promise.STORED_IS_PROCESSED]


def test_a_message_that_was_processed_leaves_its_inbox(ledgers: Ledgers) -> None:
    place(ledgers, "a")
    store(ledgers, CREDITS, "credit_service")
    ledgers.connection.execute("DELETE FROM rocketmq_inbox")
    assert ledgers.credit("a", 12) == []


def test_what_an_inbox_has_is_handled_for_the_broker(ledgers: Ledgers) -> None:
    place(ledgers, "a")
    store(ledgers, CREDITS, "credit_service")
    assert ledgers.watch.is_handled("credit_service", "orders", "a")
    assert not ledgers.watch.is_handled("credit_service", "order_cancellations", "a")
    assert not ledgers.watch.is_handled("inventory_service", "orders", "a")


def test_what_a_group_handled_stands_in_its_database(ledgers: Ledgers) -> None:
    asked = [("credit_service", "orders"), ("credit_service", "order_cancellations")]
    asked += [("inventory_service", "orders"), ("inventory_service", "order_cancellations")]

    def handled() -> list[bool]:
        return [ledgers.watch.is_handled(group, topic, "a") for group, topic in asked]

    assert handled() == [False, False, False, False]
    place(ledgers, "a")
    ledgers.credit("a", 12)
    ledgers.does(STOCK, "INSERT INTO shipments VALUES ('a', 'SHIPPED')")
    assert handled() == [True, False, True, False]
    ledgers.credit("a", 0, "reversal", -12)
    ledgers.does(STOCK, "UPDATE shipments SET state = 'RETURNED'")
    assert handled() == [True, True, True, True]
    assert ledgers.watch.is_handled("order_service", "order_shortages", "a")
