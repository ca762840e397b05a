"""Tests of barrier, settle and once on SQLite and PostgreSQL. Databases without ON CONFLICT use savepoints."""

import threading
from collections.abc import Iterator

import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import Column, Engine, MetaData, String, Table, create_engine, func, insert, inspect, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from rocketmq_broker.client import LocalTransactionState
from rocketmq_broker.databases import DecidedBefore, LocalOutcome, missing_rows
from rocketmq_broker.databases.sqlalchemy import (
    CONSUMED,
    TRANSACTIONS,
    add_tables,
    barrier,
    barrier_async,
    conclude,
    create_tables,
    drop_tables,
    once,
    once_async,
    settle,
    settle_async,
)
from rocketmq_broker.message import Message, MessageExt

METADATA = MetaData()
ORDERS = Table("orders", METADATA, Column("order_id", String(36), primary_key=True), Column("size", String(9), unique=True))
add_tables(METADATA)

COMMIT, ROLLBACK, UNKNOWN = LocalTransactionState


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = create_engine(database_url)
    METADATA.create_all(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def session(engine: Engine) -> Iterator[Session]:
    with Session(engine) as session:
        yield session


def orders(session: Session) -> int:
    return session.execute(select(func.count()).select_from(ORDERS)).scalar_one()


def place_twice(session: Session) -> None:
    place(session)
    place(session)


def place(session: Session, order_id: str = "order-1") -> None:
    session.execute(insert(ORDERS).values(order_id=order_id))


def test_work_behind_the_barrier_is_committed_with_its_row(session: Session, engine: Engine, half: Message) -> None:
    with barrier(session, half):
        place(session)
    with Session(engine) as another:
        assert orders(another) == 1
        assert settle(another, half) is COMMIT


def test_work_that_raises_leaves_nothing_and_is_rolled_back_for_good(session: Session, half: Message) -> None:
    with pytest.raises(IntegrityError), barrier(session, half):
        place_twice(session)
    assert orders(session) == 0
    session.rollback()
    assert settle(session, half) is ROLLBACK
    with pytest.raises(DecidedBefore, match="is already decided"), barrier(session, half):
        place(session)
    assert orders(session) == 0


def test_a_local_transaction_that_runs_twice_does_its_work_once(session: Session, half: Message) -> None:
    with barrier(session, half):
        place(session)
    with pytest.raises(DecidedBefore), barrier(session, half):
        place(session, "order-2")
    assert orders(session) == 1


def test_local_transaction_and_check_back_at_once_agree_on_one_outcome(engine: Engine, half: Message) -> None:
    answers: list[LocalTransactionState] = []
    is_inside, may_end = threading.Event(), threading.Event()

    def check_back() -> None:
        with Session(engine) as session:
            answers.append(settle(session, half))

    def execute() -> None:
        with Session(engine) as session, barrier(session, half):
            is_inside.set()
            assert may_end.wait(60)
            place(session)

    threads = [threading.Thread(target=execute), threading.Thread(target=check_back)]
    threads[0].start()
    assert is_inside.wait(60)
    threads[1].start()
    may_end.set()
    for thread in threads:
        thread.join(60)
    assert answers == [COMMIT]


def test_a_pending_transaction_is_unknown_until_it_is_concluded_once(session: Session, half: Message) -> None:
    with barrier(session, half, LocalOutcome.PENDING):
        place(session)
    assert settle(session, half) is UNKNOWN
    assert conclude(session, str(half.transaction_id), LocalOutcome.COMMITTED)
    session.commit()
    assert not conclude(session, str(half.transaction_id), LocalOutcome.ROLLED_BACK)
    assert settle(session, half) is COMMIT


def test_a_message_that_comes_twice_is_consumed_once_by_each_consumer(session: Session, delivered: MessageExt) -> None:
    for consumer in ("credits", "credits", "stock"):
        with once(session, delivered, consumer) as is_first:
            if is_first:
                place(session, consumer)
    assert orders(session) == 2


def test_a_message_whose_work_failed_is_consumed_when_it_comes_again(session: Session, delivered: MessageExt) -> None:
    with pytest.raises(ZeroDivisionError), once(session, delivered, "credits"):
        raise ZeroDivisionError
    with once(session, delivered, "credits") as is_first:
        assert is_first


def test_two_messages_about_one_order_are_one_by_its_key(session: Session, delivered: MessageExt) -> None:
    again = delivered.with_properties({"UNIQ_KEY": "C" * 32})
    with once(session, delivered, "credits", "order-1") as is_first:
        assert is_first
    with once(session, again, "credits", "order-1") as is_first:
        assert not is_first
    with once(session, "order-1", "credits") as is_first:
        assert not is_first, "a task that has the key only"


@pytest.mark.parametrize(("consumer", "key"), [("", "order-1"), ("credits", ""), ("credits", "k" * 256)])
def test_keys_that_do_not_fit_are_refused(session: Session, delivered: MessageExt, consumer: str, key: str) -> None:
    with pytest.raises(ValueError, match="1 to 255 characters"), once(session, delivered, consumer, key):
        pass


def test_a_message_outside_a_transaction_has_no_barrier(session: Session) -> None:
    with pytest.raises(ValueError, match="no transaction id"):
        settle(session, Message.of("orders", "order 1"))


@pytest.mark.parametrize("is_other_database", [False, True])
def test_another_violated_constraint_is_no_duplicate(
    session: Session, is_other_database: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_other_database:
        if session.connection().dialect.name == "sqlite":
            pytest.skip("sqlite3 ends the database transaction with its savepoint; other databases do not")
        monkeypatch.setattr(missing_rows, "insert_missing", missing_rows._insert_by_savepoints)
    insert_missing = missing_rows.insert_missing
    rows = [{"order_id": "order-1", "size": "small"}]
    assert insert_missing(session.connection(), ORDERS, rows, ["order_id"]) == {("order-1",)}
    rows.append({"order_id": "order-2", "size": "large"})
    assert insert_missing(session.connection(), ORDERS, rows, ["order_id"]) == {("order-2",)}
    with pytest.raises(IntegrityError):
        insert_missing(session.connection(), ORDERS, [{"order_id": "order-3", "size": "small"}], ["order_id"])
    session.rollback()
    assert orders(session) == 0


def test_a_migration_makes_and_drops_both_tables(sqlite_url: str) -> None:
    engine = create_engine(sqlite_url)
    with engine.begin() as connection:
        op = Operations(MigrationContext.configure(connection))
        create_tables(op)
        assert set(inspect(connection).get_table_names()) == {TRANSACTIONS.name, CONSUMED.name}
        drop_tables(op)
        assert inspect(connection).get_table_names() == []
    engine.dispose()


async def test_async_sessions_have_the_same_barrier(sqlite_url: str, half: Message, delivered: MessageExt) -> None:
    engine = create_async_engine(sqlite_url.replace("sqlite:", "sqlite+aiosqlite:"))
    async with engine.begin() as connection:
        await connection.run_sync(METADATA.create_all)
    async with AsyncSession(engine) as session:
        with pytest.raises(ZeroDivisionError):
            async with barrier_async(session, half):
                raise ZeroDivisionError
        async with barrier_async(session, half):
            await session.execute(insert(ORDERS).values(order_id="order-1"))
        assert await settle_async(session, half) is COMMIT
        with pytest.raises(DecidedBefore):
            async with barrier_async(session, half):
                pass
        firsts = []
        for _ in range(2):
            async with once_async(session, delivered, "credits") as is_first:
                firsts.append(is_first)
        assert firsts == [True, False]
    await engine.dispose()
