import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, event, text

from credit_service.adapters.ledger import CreditNotStored, Ledger
from credit_service.adapters.tables import CreditDatabase
from credit_service.domain.credit import Credit, CreditOutcome
from credit_service.service_layer.crediting import HasEntries
from service_runtime.database.database_errors import DatabaseFailure, DatabaseRefusal, DatabaseUnavailable
from tests.component.credit_service.conftest import a_credit, a_reversal, credit, entries, points
from tests.component.credit_service.test_crediting import create_trigger, refuse

CREDITED, ALREADY, CONFLICTING = CreditOutcome.CREDITED, CreditOutcome.ALREADY_CREDITED, CreditOutcome.CONFLICTING
REFUSED = CreditOutcome.REFUSED


def test_a_batch_credits_each_customer_with_the_sum_of_the_orders(ledger: Ledger) -> None:
    batch = [a_credit("1", amount_cents=250), a_credit("2", amount_cents=399), a_credit("3", customer="bob", amount_cents=100)]
    assert credit(ledger, batch) == [CREDITED] * 3
    assert (points(ledger), points(ledger, "bob")) == (2 + 3, 1)
    written = [(entry.order_id, entry.points, entry.amount_cents) for entry in entries(ledger)]
    assert written == [("2", 3, 399), ("1", 2, 250)]


def test_a_redelivery_changes_nothing(ledger: Ledger) -> None:
    credit(ledger, [a_credit("1"), a_credit("2")])
    before = ledger.find_customer("ada", max_entries=10)
    assert credit(ledger, [a_credit("2"), a_credit("1")]) == [ALREADY, ALREADY]
    assert ledger.find_customer("ada", max_entries=10) == before


def test_a_redelivery_and_a_conflict_within_one_batch_are_seen(ledger: Ledger) -> None:
    batch = [a_credit("1"), a_credit("1"), a_credit("1", amount_cents=1)]
    assert credit(ledger, batch) == [CREDITED, ALREADY, CONFLICTING]


def test_only_what_was_missing_is_added(ledger: Ledger) -> None:
    credit(ledger, [a_credit("1", amount_cents=100)])
    assert credit(ledger, [a_credit("1", amount_cents=100), a_credit("2", amount_cents=200)]) == [ALREADY, CREDITED]
    assert points(ledger) == 3


@pytest.mark.parametrize("other", [a_credit("1", amount_cents=9900), a_credit("1", customer="bob")])
def test_another_amount_or_customer_for_a_credited_order_is_a_conflict_and_changes_nothing(ledger: Ledger, other: object) -> None:
    credit(ledger, [a_credit("1")])
    before = ledger.find_customer("ada", max_entries=10)
    assert credit(ledger, [other, a_credit("2", customer="eve")]) == [CONFLICTING, CREDITED]  # type: ignore[list-item]
    assert ledger.find_customer("ada", max_entries=10) == before
    assert ledger.find_customer("bob", max_entries=10) is None


@pytest.mark.parametrize("by_trigger", [False, True])
def test_a_batch_with_a_credit_that_the_database_refuses_writes_nothing(ledger: Ledger, engine: Engine, by_trigger: bool) -> None:
    if by_trigger or engine.dialect.name == "sqlite":
        refuse(engine, 666)
    else:
        with engine.begin() as connection:
            connection.execute(text("ALTER TABLE credits ADD CHECK (amount_cents <> 666)"))
    with pytest.raises(DatabaseRefusal):
        credit(ledger, [a_credit("1"), a_credit("2", amount_cents=666), a_credit("3")])
    assert [ledger.find_order(order_id) for order_id in "123"] == [()] * 3
    assert ledger.find_customer("ada", max_entries=1) is None


def test_a_row_that_is_neither_inserted_nor_found_is_an_error_and_no_redelivery(ledger: Ledger, engine: Engine) -> None:
    create_trigger(engine, "NEW.amount_cents = 666", "RAISE(IGNORE)", "RETURN NULL")
    with pytest.raises(CreditNotStored, match="cannot store the credit of order 2: the row was neither inserted nor found"):
        credit(ledger, [a_credit("1"), a_credit("2", amount_cents=666), a_credit("3")])
    assert ledger.find_order("1") == ()


def test_the_last_entry_is_known_by_its_number(ledger: Ledger) -> None:
    assert ledger.last_written() == 0
    credit(ledger, [a_credit("1"), a_reversal("1")])
    assert ledger.last_written() == 2


def test_workers_with_overlapping_batches_credit_each_order_once(ledger: Ledger) -> None:
    orders = [a_credit(f"order-{number}", customer=f"customer-{number % 5}", amount_cents=100) for number in range(60)]
    outcomes = written_by_workers(ledger, orders, workers=6, batch_size=12)
    assert outcomes.count(CREDITED) == len(orders)
    assert outcomes.count(ALREADY) == len(orders) * 5
    customers = [f"customer-{number}" for number in range(5)]
    assert [(points(ledger, customer), len(entries(ledger, customer))) for customer in customers] == [(12, 12)] * 5


def written_by_workers(ledger: Ledger, credits: list[Credit], *, workers: int, batch_size: int) -> list[CreditOutcome]:
    """Writes all entries from each of several threads at once, in another sequence in each. Returns all outcomes."""
    start = threading.Barrier(workers)

    def work(seed: int) -> list[CreditOutcome]:
        mine = credits[:]
        random.Random(seed).shuffle(mine)
        start.wait()
        batches = [mine[first : first + batch_size] for first in range(0, len(mine), batch_size)]
        return [outcome for batch in batches for outcome in credit(ledger, batch)]

    with ThreadPoolExecutor(workers) as threads:
        return [outcome for found in threads.map(work, range(workers)) for outcome in found]


def test_a_ledger_that_cannot_be_written_is_an_error_and_nothing_is_credited(ledger: Ledger, engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE balances RENAME TO gone"))
    with pytest.raises(DatabaseUnavailable):
        credit(ledger, [a_credit("1")])
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM credits")).scalar_one() == 0


def test_a_reversal_takes_the_points_of_its_order_back(ledger: Ledger) -> None:
    credit(ledger, [a_credit("1", amount_cents=250), a_credit("2", amount_cents=399)])
    assert credit(ledger, [a_reversal("1", amount_cents=250)]) == [CREDITED]
    assert points(ledger) == 3
    assert [(entry.order_id, entry.kind, entry.points, entry.amount_cents) for entry in entries(ledger)] == [
        ("1", "reversal", -2, 250), ("2", "credit", 3, 399), ("1", "credit", 2, 250),
    ]  # fmt: skip


def test_a_reversal_that_comes_before_its_credit_ends_at_the_same_balance(ledger: Ledger) -> None:
    assert credit(ledger, [a_reversal("1")]) == [CREDITED]
    assert points(ledger) == -25
    assert credit(ledger, [a_credit("1")]) == [CREDITED]
    assert points(ledger) == 0


def test_credit_and_reversal_in_one_batch_in_either_order_cancel_each_other_out(ledger: Ledger) -> None:
    batch = [a_credit("1"), a_reversal("1"), a_reversal("2"), a_credit("2")]
    assert credit(ledger, batch) == [CREDITED] * 4
    assert (points(ledger), len(entries(ledger))) == (0, 4)


def test_a_reversal_that_is_delivered_again_changes_nothing(ledger: Ledger) -> None:
    credit(ledger, [a_credit("1"), a_reversal("1")])
    before = ledger.find_customer("ada", max_entries=10)
    assert credit(ledger, [a_reversal("1"), a_credit("1"), a_reversal("1")]) == [ALREADY] * 3
    assert credit(ledger, [a_reversal("1", amount_cents=1)]) == [CONFLICTING]
    assert ledger.find_customer("ada", max_entries=10) == before


def test_an_order_s_entries_are_found_in_the_order_in_which_they_were_written(ledger: Ledger) -> None:
    credit(ledger, [a_reversal("1"), a_credit("2")])
    credit(ledger, [a_credit("1")])
    assert [(entry.kind, entry.points) for entry in ledger.find_order("1")] == [("reversal", -25), ("credit", 25)]
    assert ledger.find_order("3") == ()


def test_workers_that_credit_and_reverse_at_once_end_at_a_balance_of_zero(ledger: Ledger) -> None:
    written_by_workers(
        ledger, [make(f"order-{number}") for number in range(40) for make in (a_credit, a_reversal)], workers=4, batch_size=16
    )
    assert (points(ledger), len(entries(ledger))) == (0, 80)


def test_a_batch_of_none_is_fine(ledger: Ledger) -> None:
    assert credit(ledger, []) == []


def test_the_migrations_make_the_tables_that_the_code_uses(engine: Engine) -> None:
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": "credit_service_version"})
        assert compare_metadata(context, CreditDatabase.metadata) == []


def annul(ledger: Ledger, credit: Credit) -> None:
    with ledger.inbox._transaction() as session:
        ledger.annul(session, credit)


def test_a_refused_order_can_be_neither_credited_nor_reversed_and_the_balance_is_the_sum(ledger: Ledger) -> None:
    credit(ledger, [a_credit("1", amount_cents=500)])
    annul(ledger, a_credit("2"))
    annul(ledger, a_credit("2"))
    assert credit(ledger, [a_credit("2"), a_reversal("2")]) == [REFUSED, ALREADY]
    assert points(ledger) == 5
    assert [(entry.kind, entry.amount_cents) for entry in ledger.find_order("2")] == [("credit", 0), ("reversal", 0)]


@pytest.mark.parametrize("written", [a_credit("1"), a_reversal("1")])
def test_an_order_with_an_entry_of_its_own_is_not_refused_and_nothing_is_written(ledger: Ledger, written: Credit) -> None:
    credit(ledger, [written])
    before = ledger.find_order("1")
    with pytest.raises(HasEntries, match="cannot close order 1 without a credit"):
        annul(ledger, a_credit("1"))
    assert ledger.find_order("1") == before


def test_an_order_whose_refusal_the_database_refuses_is_not_refused(ledger: Ledger, engine: Engine) -> None:
    refuse(engine, 0)
    with pytest.raises(DatabaseFailure):
        annul(ledger, a_credit("1"))
    assert ledger.find_order("1") == ()


def test_an_order_over_nothing_is_credited_and_reversed_as_any_other(ledger: Ledger) -> None:
    free = [a_credit("1", amount_cents=0), a_reversal("1", amount_cents=0)]
    assert credit(ledger, free) == [CREDITED, CREDITED]
    assert credit(ledger, [*free, a_reversal("1")]) == [ALREADY, ALREADY, CONFLICTING]


def test_rows_are_written_in_one_order_so_that_two_batches_cannot_deadlock(ledger: Ledger, engine: Engine) -> None:
    orders: list[str] = []
    customers: list[str] = []

    def note(connection: object, cursor: object, statement: str, parameters: object, context: object, many: bool) -> None:
        if statement.startswith("INSERT INTO"):  # the columns of a row come in any order
            values = str(parameters).split("'")
            orders.extend(value for value in values if value in {"order 1", "order 2"})
            customers.extend(value for value in values if value in {"ada", "bob"})

    event.listen(engine, "before_cursor_execute", note)
    credit(ledger, [a_credit("order 2", customer="ada"), a_credit("order 1", customer="bob")])
    assert orders == ["order 1", "order 2"], "the rows of the orders are not written in the order of their ids"
    assert customers == ["bob", "ada", "ada", "bob"], "the balances are not written in the order of the customers"
