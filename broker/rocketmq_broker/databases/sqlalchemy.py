"""Barrier, settle and once for sessions of SQLAlchemy, and so of SQLModel and Flask-SQLAlchemy. Needs the extra `sqlalchemy`.

    def execute_local_transaction(self, message, order):
        with Session(engine) as session, barrier(session, message):
            session.add(order)
        return LocalTransactionState.COMMIT_MESSAGE

    def check_local_transaction(self, message):
        with Session(engine) as session:
            return settle(session, message)

A listener may let all errors pass: the client then answers UNKNOWN, and the broker checks back. The database gives the rows
their times.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Protocol

if find_spec("sqlalchemy") is None:
    raise ImportError("the barrier for SQLAlchemy needs the package sqlalchemy: pip install 'rocketmq-broker[sqlalchemy]'")

from sqlalchemy import Column, Connection, DateTime, Executable, MetaData, String, Table, func, select, update
from sqlalchemy.orm import Session
from sqlalchemy.schema import CreateTable, DropTable

from rocketmq_broker.client import LocalTransactionState
from rocketmq_broker.databases import (
    MAX_CHARACTERS,
    DecidedBefore,
    LocalOutcome,
    decision_of,
    key_of,
    transaction_id_of,
)
from rocketmq_broker.databases.missing_rows import Row, insert_missing
from rocketmq_broker.message import Message, MessageExt

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncSession

_METADATA: Final = MetaData()
TRANSACTIONS: Final = Table(
    "rocketmq_transactions",
    _METADATA,
    Column("transaction_id", String(64), primary_key=True),
    Column("state", String(16), nullable=False),
    Column("written_at", DateTime, server_default=func.current_timestamp(), nullable=False),
)
"""The table of transactions. A program may use one of its own that has the columns `state` and `transaction_id`, its key."""
CONSUMED: Final = Table(
    "rocketmq_consumed",
    _METADATA,
    Column("consumer", String(MAX_CHARACTERS), primary_key=True),
    Column("message_key", String(MAX_CHARACTERS), primary_key=True),
    Column("written_at", DateTime, server_default=func.current_timestamp(), nullable=False),
)
"""The table of consumed messages."""
_TABLES: Final = (TRANSACTIONS, CONSUMED)


@contextmanager
def barrier(session: Session, message: Message, state: LocalOutcome = LocalOutcome.COMMITTED) -> Iterator[None]:
    """Runs a local transaction in its block: the transaction's row and the block's work get one database commit, the last step.

    Durable after the block. Raises DecidedBefore, before the block runs, if the transaction has a row. If the block raises,
    nothing is written. If the database commit raises, nobody knows: answer UNKNOWN, and the check-back decides.
    With PENDING, `conclude` decides later, and the listener answers UNKNOWN.
    """
    with _one_commit(session):
        _begin(session, message, state)
        yield


def settle(session: Session, message: Message) -> LocalTransactionState:
    """Returns the answer to a check-back. Writes ROLLED_BACK first if the transaction has no row; durable on return."""
    with _one_commit(session):
        state = settled_state(session.connection(), TRANSACTIONS, _outcome_row(message, LocalOutcome.ROLLED_BACK))
    return decision_of(state)


@contextmanager
def once(session: Session, message: MessageExt | str, consumer: str, key: str | None = None) -> Iterator[bool]:
    """Yields whether `consumer` has not consumed this message before; the block's work and this fact get one database commit.

    Durable after the block. `consumer` names what is done, such as the consumer group: two of them in one database each consume
    a message once. `key` is an id of the business, such as an order's; the default is the message's id from its producer. In
    place of the message its key will do, as a Celery task has it. One that another session consumes at this moment waits for it.
    If the block raises, the message may be consumed again.
    """
    with _one_commit(session):
        yield _is_first(session, message, consumer, key)


def conclude(session: Session, transaction_id: str, state: LocalOutcome) -> bool:
    """Decides a PENDING transaction, in the caller's database transaction: nothing is durable before its commit.

    Returns False, and writes nothing, if the transaction is not PENDING.
    """
    its_row = TRANSACTIONS.c.transaction_id == transaction_id, TRANSACTIONS.c.state == LocalOutcome.PENDING.value
    return session.connection().execute(update(TRANSACTIONS).where(*its_row).values(state=state.value)).rowcount == 1


@asynccontextmanager
async def barrier_async(
    session: "AsyncSession", message: Message, state: LocalOutcome = LocalOutcome.COMMITTED
) -> AsyncIterator[None]:
    """Runs a local transaction in its block, as `barrier` does."""
    async with _one_commit_async(session):
        await session.run_sync(_begin, message, state)
        yield


async def settle_async(session: "AsyncSession", message: Message) -> LocalTransactionState:
    """Returns the answer to a check-back, as `settle` does."""
    return await session.run_sync(settle, message)


@asynccontextmanager
async def once_async(
    session: "AsyncSession", message: MessageExt | str, consumer: str, key: str | None = None
) -> AsyncIterator[bool]:
    """Yields whether `consumer` has not consumed this message before, as `once` does."""
    async with _one_commit_async(session):
        yield await session.run_sync(_is_first, message, consumer, key)


def write_outcome(connection: Connection, table: Table, row: Row) -> None:
    """Writes the row of a transaction into a table of the program's own. The caller commits the database.

    Raises DecidedBefore if the transaction has a row.
    """
    if not insert_missing(connection, table, [row], ["transaction_id"]):
        raise DecidedBefore(row["transaction_id"])


def settled_state(connection: Connection, table: Table, refusal: Row) -> str:
    """Returns the state in the transaction's row; writes `refusal` first if there is none. The caller commits the database."""
    insert_missing(connection, table, [refusal], ["transaction_id"])
    query = select(table.c.state).where(table.c.transaction_id == refusal["transaction_id"])
    return str(connection.execute(query).scalar_one())


def add_tables(metadata: MetaData) -> Sequence[Table]:
    """Adds both tables to the program's own metadata, so that `create_all` makes them and Alembic finds them. Returns them."""
    return [table.to_metadata(metadata) for table in _TABLES]


class MigrationSteps(Protocol):
    """What a migration needs of Alembic: its object `op`."""

    def execute(self, sqltext: Executable) -> None:
        """Runs a statement, or writes it into the script of an offline migration."""


def create_tables(op: MigrationSteps) -> None:
    """Makes both tables: the `upgrade` of a migration calls it with Alembic's `op`."""
    for table in _TABLES:
        op.execute(CreateTable(table))


def drop_tables(op: MigrationSteps) -> None:
    """Drops both tables: the `downgrade` of a migration calls it with Alembic's `op`."""
    for table in _TABLES:
        op.execute(DropTable(table))


@contextmanager
def _one_commit(session: Session) -> Iterator[None]:
    try:
        yield
        session.commit()
    except BaseException:
        session.rollback()
        raise


@asynccontextmanager
async def _one_commit_async(session: "AsyncSession") -> AsyncIterator[None]:
    try:
        yield
        await session.commit()
    except BaseException:
        await session.rollback()
        raise


def _begin(session: Session, message: Message, state: LocalOutcome) -> None:
    write_outcome(session.connection(), TRANSACTIONS, _outcome_row(message, state))


def _is_first(session: Session, message: MessageExt | str, consumer: str, key: str | None) -> bool:
    row = {"consumer": consumer, "message_key": key_of(message, consumer, key)}
    return bool(insert_missing(session.connection(), CONSUMED, [row], ["consumer", "message_key"]))


def _outcome_row(message: Message, state: LocalOutcome) -> Row:
    return {"transaction_id": transaction_id_of(message), "state": state.value}
