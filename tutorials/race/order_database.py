"""The order database, a SQLite file. The module injects the faults that occur at a database commit."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Final

from tutorials.race.faults import Fault, FaultPlan
from tutorials.race.order import Order

COMMIT_TAKES_S: Final = 0.002
"""The duration of a database commit in seconds. The network has no delay."""
_SCHEMA: Final = "CREATE TABLE orders (order_id TEXT PRIMARY KEY, number INTEGER NOT NULL, total_cents INTEGER NOT NULL);"


class ProcessDied(BaseException):
    """Raised if the process was killed. Approaches must not catch this exception."""


class DatabaseRefused(Exception):
    """Raised if the database refused the transaction and stored nothing."""


class Writing:
    """An open transaction of the order database."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Wraps `connection`, which must have an open transaction."""
        self._connection = connection
        self.rows = 0
        """The number of rows written in this transaction."""

    def store(self, order: Order) -> None:
        """Inserts a row for the order. Raises sqlite3.IntegrityError if the row exists."""
        self.execute("INSERT INTO orders VALUES (?, ?, ?)", (order.order_id, order.number, order.total_cents))

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Runs a statement and returns the selected rows."""
        cursor = self._connection.execute(statement, values)
        self.rows += max(0, cursor.rowcount)
        return cursor.fetchall()


class OrderDatabase:
    """The connections of one process to the order database."""

    def __init__(self, path: Path, plan: FaultPlan, die: Callable[..., ProcessDied], must_live: Callable[[], None]) -> None:
        """Opens the database. `die` marks the process as dead and returns the exception to raise.

        `must_live` raises ProcessDied if the process is dead.
        """
        self._connection = _connect(path)
        self._reader = _connect(path)
        """A connection for reads. The writing connection would also return uncommitted rows of its open transaction."""
        self._plan = plan
        self._die = die
        self._must_live = must_live
        self._turn = asyncio.Lock()
        self.rows = 0
        """The number of committed rows."""

    @staticmethod
    def create(path: Path, schema: str) -> None:
        """Creates the database with the table of orders and the tables of the approach, which are defined by `schema`."""
        with closing(_connect(path)) as connection:
            connection.executescript(_SCHEMA + schema)

    def query(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Runs a query and returns the committed rows. Raises ProcessDied if the process is dead."""
        self._must_live()
        return self._reader.execute(statement, values).fetchall()

    @asynccontextmanager
    async def writing(self, what: Order | str) -> AsyncIterator[Writing]:
        """Opens a transaction that commits at the end of the block.

        `what` is the order to store, or the name of other work. The fault plan uses `what` to choose the faults. Raises
        DatabaseRefused if the database stored nothing, and ProcessDied if the process is killed.
        """
        point = what.order_id if isinstance(what, Order) else what
        self._must_live()
        if isinstance(what, Order):
            await asyncio.sleep(self._plan.delay_s(point))
        async with self._turn:
            self._must_live()
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                writing = Writing(self._connection)
                yield writing
                await asyncio.sleep(COMMIT_TAKES_S)
                self._must_live()
                kills_all = isinstance(what, Order) and self._plan.strikes(Fault.RESTART_OF_ALL, point)
                self._before_commit(point, kills_all)
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self.rows += writing.rows
        if self._plan.strikes(Fault.DIES_AFTER_COMMIT, point) or kills_all:
            raise self._die(everything=kills_all)

    def close(self) -> None:
        """Closes the connections. Uncommitted rows are lost."""
        self._connection.close()
        self._reader.close()

    def _before_commit(self, point: str, kills_all: bool) -> None:
        if self._plan.strikes(Fault.DATABASE_REFUSES, point):
            raise DatabaseRefused("the database refused the transaction")
        if self._plan.strikes(Fault.DIES_BEFORE_COMMIT, point):
            raise self._die()
        if kills_all and self._plan.is_before_commit(point):
            raise self._die(everything=True)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    # Faults kill only processes, not the machine, so written data survives without a sync to disk.
    connection.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;")
    return connection
