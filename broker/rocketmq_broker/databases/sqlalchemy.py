"""`barrier`, `settle`, `once`, `conclude` and `Inbox` for sessions of SQLAlchemy, SQLModel and Flask-SQLAlchemy.

    def execute_local_transaction(self, message, order):
        with Session(engine) as session, barrier(session, message):
            session.add(order)
        return LocalTransactionState.COMMIT_MESSAGE

    def check_local_transaction(self, message):
        with Session(engine) as session:
            return settle(session, message)

Needs the extra `sqlalchemy`. A listener need not catch errors. If it raises an error, the client sends UNKNOWN to
the broker, which later sends a check-back. The database sets the times of the rows.
"""

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

if find_spec("sqlalchemy") is None:
    raise ImportError("the barrier for SQLAlchemy needs the package sqlalchemy: pip install 'rocketmq-broker[sqlalchemy]'")

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    DateTime,
    Executable,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    and_,
    bindparam,
    delete,
    exists,
    func,
    literal,
    select,
    union_all,
    update,
)
from sqlalchemy.orm import Session
from sqlalchemy.schema import CreateIndex, CreateTable, DropTable

from rocketmq_broker.client import LocalTransactionState
from rocketmq_broker.databases import MAX_CHARACTERS, DecidedBefore, LocalOutcome, decision_of, key_of, transaction_id_of
from rocketmq_broker.databases.inbox import (
    INBOX_COLUMNS,
    BaseInbox,
    InboxMessage,
    InboxState,
    InboxStatus,
    message_from,
    state_from,
)
from rocketmq_broker.databases.missing_rows import Row, insert_missing
from rocketmq_broker.message import Message, MessageExt
from rocketmq_broker.world import World

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
INBOX: Final = Table(
    "rocketmq_inbox",
    MetaData(),
    Column("consumer", String(MAX_CHARACTERS), primary_key=True),
    Column("message_key", String(MAX_CHARACTERS), primary_key=True),
    Column("topic", String(MAX_CHARACTERS), nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("properties", Text, nullable=False),
    Column("status", String(16), nullable=False),
    Column("received_at_ms", BigInteger, nullable=False),
    Column("next_try_at_ms", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("failed_at_ms", BigInteger),
    Column("last_error", Text),
    Index("ix_rocketmq_inbox_due", "consumer", "status", "next_try_at_ms"),
)
"""The table of messages that wait to be processed; see `Inbox`. `properties` is a JSON object."""
_WAITING: Final = (InboxStatus.NEW.value, InboxStatus.FAILED.value)
_ROW: Final = tuple(INBOX.c[name] for name in INBOX_COLUMNS)


class _Removal:
    """The statements that find and remove messages. They are built once, because building takes longer than execution."""

    def __init__(self, *which: ColumnElement[bool]) -> None:
        mine = INBOX.c.consumer == bindparam("inbox")
        found = select(*_ROW).where(mine, *which).order_by(INBOX.c.next_try_at_ms).limit(bindparam("limit"))
        keys = found.with_only_columns(INBOX.c.message_key)
        self.found: Executable = found.with_for_update(skip_locked=True)
        self.at_once: Executable = delete(INBOX).where(mine, INBOX.c.message_key.in_(keys)).returning(*_ROW)


_NEW_MESSAGES: Final = _Removal(
    INBOX.c.status == InboxStatus.NEW.value, INBOX.c.next_try_at_ms >= bindparam("since_ms", type_=BigInteger)
)
_WAITING_MESSAGE: Final = _Removal(INBOX.c.status.in_(_WAITING), INBOX.c.message_key == bindparam("key"))
_HAS_DUE: Final = union_all(
    *(
        select(literal(1)).where(exists().where(INBOX.c.consumer == bindparam("inbox"), which))
        for which in (
            INBOX.c.status == InboxStatus.NEW.value,
            and_(INBOX.c.status == InboxStatus.FAILED.value, INBOX.c.next_try_at_ms <= bindparam("now_ms")),
        )
    )
)


@contextmanager
def barrier(session: Session, message: Message, state: LocalOutcome = LocalOutcome.COMMITTED) -> Iterator[None]:
    """Runs the `with` block as a local transaction. The transaction's row and the block's work are committed together.

    The work is durable after the block. Raises DecidedBefore, before the block runs, if the transaction already has a
    row. If the block raises an error, nothing is written. If the database commit raises an error, the outcome is
    unknown: return UNKNOWN from the listener, so that a check-back decides. With PENDING, also return UNKNOWN, and call
    `conclude` later.
    """
    with _one_commit(session):
        _begin(session, message, state)
        yield


def settle(session: Session, message: Message) -> LocalTransactionState:
    """Returns the decision for a check-back. Writes ROLLED_BACK first if the transaction has no row.

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
    """Runs the `async with` block as a local transaction, as `barrier` does."""
    async with _one_commit_async(session):
        await session.run_sync(_begin, message, state)
        yield


async def settle_async(session: "AsyncSession", message: Message) -> LocalTransactionState:
    """Returns the decision for a check-back, as `settle` does."""
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
    """Adds TRANSACTIONS and CONSUMED to the application's metadata, for `create_all` and Alembic. Returns the tables."""
    return [table.to_metadata(metadata) for table in _TABLES]


class MigrationSteps(Protocol):
    """The method of Alembic's `op` that the migrations use."""

    def execute(self, sqltext: Executable) -> None:
        """Executes a statement, or writes it to the script of an offline migration."""


def create_tables(op: MigrationSteps) -> None:
    """Creates TRANSACTIONS and CONSUMED. Call it with Alembic's `op` in the `upgrade` function of a migration."""
    for table in _TABLES:
        op.execute(CreateTable(table))


def drop_tables(op: MigrationSteps) -> None:
    """Drops TRANSACTIONS and CONSUMED. Call it with Alembic's `op` in the `downgrade` function of a migration."""
    for table in _TABLES:
        op.execute(DropTable(table))


_S = TypeVar("_S", bound=Session)


class Inbox(BaseInbox[_S], Generic[_S]):
    """Messages that wait in the table `rocketmq_inbox` until a worker processes them; see `databases.inbox`.

        inbox = Inbox(sessionmaker(engine), "credits")

    `put` stores messages; `put_in` stores them in the caller's database transaction, as an outbox does. `drain` calls a handler
    with a session and the messages that are due. `state`, `parked` and `retry` are for operators. Workers on PostgreSQL take
    different messages at the same time; on SQLite they take turns.
    """

    def __init__(
        self,
        sessions: Callable[[], AbstractContextManager[_S]],
        consumer: str,
        world: World | None = None,
        *,
        reading: Callable[[], AbstractContextManager[_S]] | None = None,
    ) -> None:
        """`sessions` returns a session, as a `sessionmaker` does, or a context manager that begins and commits one.

        `reading` does the same for transactions that only read. Raises ValueError if the consumer name is empty or longer than
        its column.
        """
        super().__init__(consumer, world)
        self._sessions = sessions
        self._reading_sessions = reading or sessions

    def put_in(self, session: _S, messages: Iterable[Message]) -> None:
        """Stores messages in the caller's database transaction. They are durable and can be processed after the commit."""
        self._insert(session, self.rows(messages))

    def kept_in(self, session: _S, keys: Collection[str]) -> set[str]:
        """Returns the keys whose messages are in the inbox, whether waiting, parked or dismissed."""
        mine = INBOX.c.consumer == self.consumer, INBOX.c.message_key.in_(keys)
        return set(session.connection().execute(select(INBOX.c.message_key).where(*mine)).scalars())

    @contextmanager
    def _transaction(self) -> Iterator[_S]:
        with self._sessions() as session, _one_commit(session):
            yield session

    @contextmanager
    def _reading(self) -> Iterator[_S]:
        with self._reading_sessions() as session:
            yield session

    def _insert(self, transaction: _S, rows: Sequence[Mapping[str, Any]]) -> None:
        insert_missing(transaction.connection(), INBOX, rows, ["consumer", "message_key"])

    def _take(self, transaction: _S, limit: int, since_ms: int) -> Sequence[InboxMessage]:
        return self._remove(transaction, _NEW_MESSAGES, since_ms=since_ms, limit=limit)

    def _take_one(self, transaction: _S, key: str) -> Sequence[InboxMessage]:
        return self._remove(transaction, _WAITING_MESSAGE, key=key, limit=1)

    def _remove(self, transaction: _S, which: _Removal, **parameters: Any) -> Sequence[InboxMessage]:
        """Removes and returns rows. On SQLite, the first statement must be a write, because only a write locks the database."""
        connection = transaction.connection()
        is_sqlite = connection.dialect.name == "sqlite"
        statement = which.at_once if is_sqlite else which.found
        rows = list(connection.execute(statement, {"inbox": self.consumer, **parameters}))
        if rows and not is_sqlite:
            self._delete(transaction, [row.message_key for row in rows])
        return sorted(map(message_from, rows), key=lambda message: message.received_at_ms)

    def _find(self, transaction: _S, status: InboxStatus, limit: int, due_by_ms: int | None = None) -> Sequence[InboxMessage]:
        found = select(*_ROW).where(INBOX.c.consumer == self.consumer, INBOX.c.status == status.value)
        if due_by_ms is not None:
            found = found.where(INBOX.c.next_try_at_ms <= due_by_ms)
        return list(map(message_from, transaction.connection().execute(found.order_by(INBOX.c.next_try_at_ms).limit(limit))))

    def _update(self, transaction: _S, status: InboxStatus, keys: Collection[str] | None, values: Mapping[str, Any]) -> int:
        changed = update(INBOX).where(INBOX.c.consumer == self.consumer, INBOX.c.status == status.value).values(**values)
        if keys is not None:
            changed = changed.where(INBOX.c.message_key.in_(keys))
        return transaction.connection().execute(changed).rowcount

    def _delete(self, transaction: _S, keys: Collection[str]) -> int:
        mine = INBOX.c.consumer == self.consumer, INBOX.c.message_key.in_(keys)
        return transaction.connection().execute(delete(INBOX).where(*mine)).rowcount

    def _has_due(self, transaction: _S, now_ms: int) -> bool:
        parameters = {"inbox": self.consumer, "now_ms": now_ms}
        return transaction.connection().execute(_HAS_DUE, parameters).first() is not None

    def _record_consumed(self, transaction: _S, ids: Sequence[str]) -> Collection[str]:
        rows = [{"consumer": self.consumer, "message_key": one} for one in ids]
        return {key for _, key in insert_missing(transaction.connection(), CONSUMED, rows, ["consumer", "message_key"])}

    def _count(self, transaction: _S) -> InboxState:
        connection, mine = transaction.connection(), INBOX.c.consumer == self.consumer
        by_status = select(INBOX.c.status, func.count(), func.min(INBOX.c.next_try_at_ms)).where(mine).group_by(INBOX.c.status)
        suspected = func.count().filter(INBOX.c.attempts > 0)
        failed = select(suspected, func.min(INBOX.c.received_at_ms), func.min(INBOX.c.last_error))
        failed = failed.where(mine, INBOX.c.status == InboxStatus.FAILED.value)
        return state_from(map(tuple, connection.execute(by_status)), tuple(connection.execute(failed).one()))


def add_inbox(metadata: MetaData) -> Table:
    """Adds the table of `Inbox` to the application's metadata, so that `create_all` and Alembic include it. Returns the table."""
    return INBOX.to_metadata(metadata)


def create_inbox(op: MigrationSteps) -> None:
    """Creates the table of `Inbox`. Call it with Alembic's `op` in the `upgrade` function of a migration."""
    op.execute(CreateTable(INBOX))
    for index in INBOX.indexes:
        op.execute(CreateIndex(index))


def drop_inbox(op: MigrationSteps) -> None:
    """Drops the table of `Inbox`, with its messages. Call it with Alembic's `op` in the `downgrade` function of a migration."""
    op.execute(DropTable(INBOX))


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
