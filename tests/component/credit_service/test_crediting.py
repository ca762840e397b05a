"""Tests of the path from delivery to ledger: messages that are stored, credited, redelivered, parked and refused."""

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from sqlalchemy import Engine, create_engine, event, text
from sqlmodel import Session

from credit_service.adapters.ledger import Ledger, OpensSession
from credit_service.service_layer.crediting import Crediting
from credit_service.settings import WorkerSettings
from credit_service.worker.process import drain_of
from order_messages.credit_refused import CreditRefused
from rocketmq_broker.databases.inbox import DrainResult
from rocketmq_broker.message import Message, MessageExt
from rocketmq_broker.world import World
from service_runtime.database.database_errors import DatabaseFailure, DatabaseUnavailable, OutcomeUnknown
from service_runtime.database.engine import create_database_engine
from tests.component.credit_service.conftest import a_cancellation, an_order, credited, entries, orders, points
from tests.passing_time import Clock


def drain(ledger: Ledger, *, max_tries: int = 16, cancel_refused: bool = False, batch_size: int = 256) -> DrainResult:
    """Processes the inbox like the worker's task."""
    settings = WorkerSettings().model_copy(
        update={"max_tries": max_tries, "cancel_refused": cancel_refused, "batch_size": batch_size}
    )
    return drain_of(settings, ledger)(False)


def refusals(ledger: Ledger) -> list[tuple[str, str]]:
    """Returns the order id and reason of each refusal in the outbox."""
    bodies = [CreditRefused.read(row.body) for row in ledger.refusals.due()]
    return [(body.order_id, body.reason) for body in bodies]


def refuse(engine: Engine, amount_cents: int) -> None:
    """Creates a trigger that refuses credits of this amount, or all credits if the amount is 0."""
    condition = f"NEW.amount_cents = {amount_cents}" if amount_cents else "NEW.amount_cents >= 0"
    create_trigger(engine, condition, "RAISE(ABORT, 'no')", "RAISE EXCEPTION 'no' USING DETAIL = 'of ada'")


def create_trigger(engine: Engine, condition: str, on_sqlite: str, on_postgresql: str) -> None:
    """Creates a trigger that does this with the credits that meet the condition."""
    if engine.dialect.name == "sqlite":
        statements = [f"CREATE TRIGGER no BEFORE INSERT ON credits WHEN {condition} BEGIN SELECT {on_sqlite}; END"]
    else:
        statements = [
            "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN IF {condition} THEN {on_postgresql}; END IF; RETURN NEW; END $$",
            "CREATE TRIGGER no BEFORE INSERT ON credits FOR EACH ROW EXECUTE FUNCTION no()",
        ]
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


def accept(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("DROP TRIGGER no" if engine.dialect.name == "sqlite" else "DROP TRIGGER no ON credits"))


def test_what_is_stored_is_credited_in_one_transaction_for_a_batch(ledger: Ledger) -> None:
    batch = [*orders(10), a_cancellation("order-3", 100, amount_cents=100)]
    ledger.store(batch)
    assert (ledger.inbox.state().new, points(ledger)) == (11, 0)
    assert drain(ledger) == DrainResult(handled=11)
    assert (ledger.inbox.state().waiting, points(ledger), all(credited(ledger, batch))) == (0, 9, True)


@pytest.mark.parametrize("seed", range(5))
def test_redeliveries_in_any_interleaving_with_drains_change_nothing(ledger: Ledger, seed: int) -> None:
    chance = random.Random(seed)
    messages = [*orders(30), *(a_cancellation(f"order-{number}", 100 + number, amount_cents=100) for number in range(0, 30, 3))]
    deliveries = messages * 3
    chance.shuffle(deliveries)
    while deliveries:
        size = chance.randrange(1, 9)
        ledger.store(deliveries[:size])
        del deliveries[:size]
        if chance.random() < 0.5:
            drain(ledger, batch_size=chance.randrange(1, 20))
    assert drain(ledger).failed == 0
    assert (points(ledger), ledger.last_written() >= 40) == (20, True)
    assert len(entries(ledger)) == 40


def test_a_redelivery_while_its_message_is_parked_is_no_second_message(ledger: Ledger) -> None:
    other = an_order("1", 2, amount_cents=1)
    for batch in ([an_order("1", 1)], [other], [other, an_order("1", 1)]):
        ledger.store(batch)
        drain(ledger)
    assert (ledger.inbox.state().parked, ledger.inbox.state().waiting, points(ledger)) == (1, 0, 25)


@pytest.mark.parametrize("other", [an_order("order-1", 2, amount_cents=1), a_cancellation("order-1", 3, amount_cents=1)])
def test_a_message_that_contradicts_the_ledger_is_parked_at_once_and_the_others_pass(ledger: Ledger, other: MessageExt) -> None:
    ledger.store([an_order("order-1", 1), a_cancellation("order-1", 1_000)])
    drain(ledger)
    batch = orders(20, first=100)
    ledger.store([*batch[:10], other, *batch[10:]])
    assert drain(ledger, cancel_refused=True) == DrainResult(handled=20, parked=1)
    assert (points(ledger), all(credited(ledger, batch))) == (20, True)
    (parked,) = ledger.inbox.parked()
    assert parked.last_error is not None
    assert parked.last_error.endswith("of order order-1 contradicts the ledger")
    assert refusals(ledger) == [], "the order has its credit"


def test_an_order_that_the_database_refuses_waits_alone_and_is_parked_once_others_pass(
    ledger: Ledger, engine: Engine, clock: Clock
) -> None:
    refuse(engine, 666)
    ledger.store([an_order("bad", 999, amount_cents=666), *orders(10)])
    assert drain(ledger, max_tries=3) == DrainResult(handled=10, failed=1)
    for _ in range(3):
        clock.pass_s(100)
        drain(ledger, max_tries=3)
        assert ledger.inbox.state().suspected == 0, "nothing else has passed since"
    for number in range(3):
        clock.pass_s(0.5)
        ledger.store(orders(1, first=100 + number))
        assert drain(ledger, max_tries=3).handled == 1
        clock.pass_s(100)
        assert drain(ledger, max_tries=3).parked == (number == 2)
    (parked,) = ledger.inbox.parked()
    assert parked.last_error is not None
    assert parked.last_error.splitlines() == [parked.last_error]
    assert "no" in parked.last_error
    assert "ada" not in parked.last_error, "a database's DETAIL names the customer"
    assert (points(ledger), refusals(ledger)) == (13, [])
    accept(engine)
    assert ledger.inbox.retry() == 1
    drain(ledger)
    assert points(ledger) == 19


def test_a_refused_order_is_closed_and_reported_in_one_transaction(ledger: Ledger, engine: Engine) -> None:
    refuse(engine, 666)
    ledger.store([an_order("bad", 999, amount_cents=666), *orders(3)])
    drain(ledger, max_tries=0, cancel_refused=True)
    assert [(entry.kind, entry.amount_cents) for entry in ledger.find_order("bad")] == [("credit", 0), ("reversal", 0)]
    ((order_id, reason),) = refusals(ledger)
    assert (order_id, reason, points(ledger)) == ("bad", "it failed too often", 3)
    assert (ledger.inbox.state().waiting, ledger.inbox.state().parked) == (0, 0)


def test_an_order_whose_refusal_cannot_be_reported_is_not_closed(ledger: Ledger, engine: Engine) -> None:
    """The entries and the report are written together or not at all."""
    refuse(engine, 666)
    ledger.store([an_order("bad", 999, amount_cents=666)])

    def no_report(_session: Session, _message: Message) -> None:
        raise RuntimeError("the outbox is full")

    ledger.report = no_report  # type: ignore[method-assign]
    assert drain(ledger, max_tries=0, cancel_refused=True).parked == 1
    assert (ledger.find_order("bad"), refusals(ledger), ledger.inbox.state().parked) == ((), [], 1)


def test_a_refused_reversal_is_parked_for_a_person(ledger: Ledger, engine: Engine) -> None:
    refuse(engine, 666)
    ledger.store([a_cancellation("bad", 999, amount_cents=666)])
    assert drain(ledger, max_tries=0, cancel_refused=True).parked == 1
    assert (ledger.find_order("bad"), refusals(ledger), ledger.inbox.state().parked) == ((), [], 1)


def test_the_credit_of_a_refused_order_that_comes_again_is_refused_again(ledger: Ledger, engine: Engine) -> None:
    refuse(engine, 666)
    bad = an_order("bad", 999, amount_cents=666)
    ledger.store([bad])
    drain(ledger, max_tries=0, cancel_refused=True)
    accept(engine)
    ledger.store([bad, a_cancellation("bad", 1_000, amount_cents=666)])
    assert drain(ledger) == DrainResult(handled=2)
    assert [order_id for order_id, _ in refusals(ledger)] == ["bad", "bad"]
    assert points(ledger) == 0


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_number_of_a_row_that_is_taken_is_no_fault_of_the_credit(ledger: Ledger, engine: Engine, clock: Clock) -> None:
    ledger.store(orders(1))
    drain(ledger)
    with engine.begin() as connection:
        connection.execute(text("ALTER SEQUENCE credits_id_seq RESTART WITH 1"))
    ledger.store(orders(5, first=10))
    assert drain(ledger).parked == 0
    clock.pass_s(60)
    drain(ledger)
    assert (points(ledger), ledger.inbox.state().parked) == (6, 0)


def test_a_column_that_only_a_newer_version_fills_is_no_fault_of_the_credit(ledger: Ledger, engine: Engine, clock: Clock) -> None:
    not_null = "ALTER TABLE credits ADD COLUMN campaign TEXT NOT NULL"
    nullable = "ALTER TABLE credits ALTER COLUMN campaign DROP NOT NULL"
    if engine.dialect.name == "sqlite":
        condition = "SELECT CASE WHEN NEW.campaign IS NULL THEN RAISE(ABORT, 'NOT NULL constraint failed: campaign') END"
        not_null, nullable = f"CREATE TRIGGER no BEFORE INSERT ON credits BEGIN {condition}; END", "DROP TRIGGER no"
    with engine.begin() as connection:
        if engine.dialect.name == "sqlite":
            connection.execute(text("ALTER TABLE credits ADD COLUMN campaign TEXT"))
        connection.execute(text(not_null))
    ledger.store(orders(3))
    for _ in range(5):
        assert drain(ledger, max_tries=1).parked == 0
        clock.pass_s(60)
    assert "campaign" in str(ledger.inbox.state().last_error)
    with engine.begin() as connection:
        connection.execute(text(nullable))
    drain(ledger)
    assert points(ledger) == 3


@contextmanager
def locked(engine: Engine) -> Iterator[None]:
    """Holds the database's lock in another connection during the block."""
    with create_engine(engine.url).connect() as lock:
        if engine.dialect.name == "sqlite":
            lock.connection.driver_connection.execute("BEGIN IMMEDIATE")  # type: ignore[union-attr]
        else:
            lock.exec_driver_sql("LOCK TABLE credits, balances, rocketmq_inbox")
        yield
        lock.connection.driver_connection.rollback()  # type: ignore[union-attr]


@contextmanager
def another(engine: Engine, pragma: str, option: str) -> Iterator[Ledger]:
    """Yields a ledger whose connections use this PRAGMA on SQLite, or this option on PostgreSQL."""
    url = engine.url.update_query_dict({"options": f"-c {option}"}) if engine.dialect.name == "postgresql" else engine.url
    made = create_database_engine(url.render_as_string(hide_password=False))
    if engine.dialect.name == "sqlite":
        event.listen(made, "connect", lambda connection, _: connection.execute(f"PRAGMA {pragma}"))
    yield Ledger(made, World())
    made.dispose()


def test_a_locked_database_is_an_error_of_both_sides_and_costs_no_message_a_failure(ledger: Ledger, engine: Engine) -> None:
    ledger.store(orders(3))
    with another(engine, "busy_timeout = 50", "lock_timeout=50ms") as impatient, locked(engine):
        with pytest.raises(DatabaseUnavailable):
            impatient.store(orders(3, first=10))
        with pytest.raises(DatabaseUnavailable):
            drain(impatient)
    assert (ledger.inbox.state().new, ledger.inbox.state().failed) == (3, 0)
    assert drain(ledger) == DrainResult(handled=3)


def test_a_database_that_only_reads_is_an_error_of_both_sides(ledger: Ledger, engine: Engine) -> None:
    ledger.store(orders(3))
    with another(engine, "query_only = ON", "default_transaction_read_only=on") as other:
        with pytest.raises(DatabaseFailure):
            other.store(orders(3, first=10))
        with pytest.raises(DatabaseFailure):
            drain(other)
    assert drain(ledger) == DrainResult(handled=3)


def test_a_full_database_loses_no_message_that_it_has(sqlite_ledger: Ledger, sqlite_engine: Engine) -> None:
    sqlite_ledger.store(orders(50))
    with another(sqlite_engine, "max_page_count = 1", "") as full, pytest.raises(DatabaseUnavailable, match="full"):
        full.store([an_order(str(number), number, note="x" * 3000) for number in range(50, 100)])
    assert drain(sqlite_ledger) == DrainResult(handled=50)
    assert points(sqlite_ledger) == 50


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_commit_without_an_answer_is_neither_lost_nor_doubled(ledger: Ledger, is_committed: bool) -> None:
    lost = iter([True])

    @contextmanager
    def losing(sessions: OpensSession) -> Iterator[Session]:
        with sessions() as session:
            yield session
            if not is_committed and next(lost, False):
                raise OutcomeUnknown("the connection is lost")
        if next(lost, False):
            raise OutcomeUnknown("the connection is lost")

    ledger.store(orders(10))
    result = ledger.inbox_through(losing).drain(Crediting(ledger).credit)
    assert (points(ledger), ledger.inbox.state().waiting) == (10, 0)
    assert result == DrainResult(handled=0 if is_committed else 10)


def test_workers_and_a_service_at_the_same_time_credit_each_order_once(ledger: Ledger, engine: Engine) -> None:
    batch = [*orders(300), *(a_cancellation(f"order-{number}", 1_000 + number, amount_cents=100) for number in range(100))]

    def store(seed: int) -> None:
        mine = batch[:]
        random.Random(seed).shuffle(mine)
        for first in range(0, len(mine), 20):
            ledger.store(mine[first : first + 20])

    def work(_: int) -> None:
        worker = Ledger(engine, World())
        while not stored.is_set() or worker.inbox.is_due():
            drain(worker, batch_size=16)

    stored = threading.Event()
    with ThreadPoolExecutor(4) as threads:
        working = [threads.submit(work, number) for number in range(2)]
        for storing in [threads.submit(store, seed) for seed in range(2)]:
            storing.result()
        stored.set()
        for one in working:
            one.result()
    assert (points(ledger), ledger.inbox.state().waiting, ledger.inbox.state().parked) == (200, 0, 0)
