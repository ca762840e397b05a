"""`barrier`, `settle`, `once` and `conclude` for sessions of SQLAlchemy, SQLModel and Flask-SQLAlchemy.

    def execute_local_transaction(self, message, order):
        with Session(engine) as session, barrier(session, message):
            session.add(order)
        return LocalTransactionState.COMMIT_MESSAGE

    def check_local_transaction(self, message):
        with Session(engine) as session:
            return settle(session, message)

Needs the extra `sqlalchemy`. A listener need not catch errors. If it raises one, the client answers UNKNOWN, and the broker
checks back. The database sets the times of the rows.
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
"""The table of transactions. An application may use its own table with the columns `transaction_id` (its key) and `state`."""
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
    """Runs a local transaction in its block. The transaction's row and the block's work are committed together at the end.

    The work is durable after the block. Raises DecidedBefore, before the block runs, if the transaction already has a row. If the
    block raises an error, nothing is written. If the database commit raises an error, the outcome is not known: answer UNKNOWN,
    so that the check-back decides. With PENDING, answer UNKNOWN and call `conclude` later.
    """
    with _one_commit(session):
        _begin(session, message, state)
        yield


def settle(session: Session, message: Message) -> LocalTransactionState:
    """Returns the answer to a check-back. Writes ROLLED_BACK first if the transaction has no row.

    The change is durable on return.
    """
    with _one_commit(session):
        state = settled_state(session.connection(), TRANSACTIONS, _outcome_row(message, LocalOutcome.ROLLED_BACK))
    return decision_of(state)


@contextmanager
def once(session: Session, message: MessageExt | str, consumer: str, key: str | None = None) -> Iterator[bool]:
    """Yields True if `consumer` has not consumed this message before.

    The block's work and the record of the consumption are committed together.

    The work is durable after the block. If the block raises an error, the message may be consumed again. If another session is
    consuming the same message, the call waits for it. `consumer` identifies the work, for example by the consumer group: each
    consumer consumes a message once. `key` is a business key such as an order id; the default is the message's unique id.
    `message` may also be the key itself, for example in a Celery task.
    """
    with _one_commit(session):
        yield _is_first(session, message, consumer, key)


def conclude(session: Session, transaction_id: str, state: LocalOutcome) -> bool:
    """Decides a PENDING transaction within the caller's database transaction. The decision is durable when the caller commits.

    Returns False and writes nothing if the transaction is not PENDING.
    """
    is_pending = TRANSACTIONS.c.transaction_id == transaction_id, TRANSACTIONS.c.state == LocalOutcome.PENDING.value
    return session.connection().execute(update(TRANSACTIONS).where(*is_pending).values(state=state.value)).rowcount == 1


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
    """Yields True if `consumer` has not consumed this message before, as `once` does."""
    async with _one_commit_async(session):
        yield await session.run_sync(_is_first, message, consumer, key)


def write_outcome(connection: Connection, table: Table, row: Row) -> None:
    """Writes the row of a transaction into the application's own table. The caller commits.

    Raises DecidedBefore if the transaction already has a row.
    """
    if not insert_missing(connection, table, [row], ["transaction_id"]):
        raise DecidedBefore(row["transaction_id"])


def settled_state(connection: Connection, table: Table, refusal: Row) -> str:
    """Returns the state in the transaction's row. Writes the row `refusal` first if there is none. The caller commits."""
    insert_missing(connection, table, [refusal], ["transaction_id"])
    query = select(table.c.state).where(table.c.transaction_id == refusal["transaction_id"])
    return str(connection.execute(query).scalar_one())


def add_tables(metadata: MetaData) -> Sequence[Table]:
    """Adds both tables to the application's metadata, so that `create_all` and Alembic include them. Returns the tables."""
    return [table.to_metadata(metadata) for table in _TABLES]


class MigrationSteps(Protocol):
    """The part of Alembic's `op` that the migrations use."""

    def execute(self, sqltext: Executable) -> None:
        """Executes a statement, or writes it to the script of an offline migration."""


def create_tables(op: MigrationSteps) -> None:
    """Creates both tables. Call it with Alembic's `op` in the `upgrade` function of a migration."""
    for table in _TABLES:
        op.execute(CreateTable(table))


def drop_tables(op: MigrationSteps) -> None:
    """Drops both tables. Call it with Alembic's `op` in the `downgrade` function of a migration."""
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
