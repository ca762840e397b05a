"""A SQLite file in memory that outlives the processes of a world, with engines whose statements meet its faults.

It omits the isolation levels and row locks of other databases: as in SQLite, a writer excludes all other writers. A pool has any
number of connections.
"""

import asyncio
import contextvars
import itertools
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final, cast

from sqlalchemy import Connection, Engine, QueuePool, create_engine, event

from rocketmq_broker.testing.simulation.databases.connection import Parameters, SimulatedConnection
from rocketmq_broker.testing.simulation.databases.faults import DatabaseFaults, Deaths, new_deaths
from rocketmq_broker.testing.simulation.databases.gate import DatabaseFile, DatabaseGate, RowNote, written_rows
from rocketmq_broker.testing.simulation.databases.scratch import scratch_folder
from rocketmq_broker.testing.simulation.history import History
from rocketmq_broker.testing.simulation.process import SimulatedProcess
from rocketmq_broker.world import Chance

_TRIES_TO_LOCK_EVERY_S: Final = 0.001
_BUSY_TIMEOUT_S: Final = 10.0

OnCommit = Callable[[str, Callable[[], sqlite3.Connection]], object]
"""A callback for each database commit that changed rows, with the database's name and a function that returns its `reader`."""
Connect = Callable[[], SimulatedConnection]


class SimulatedDatabase:
    """A database that continues to exist after the processes that use it, and their machines, have failed."""

    _numbers = itertools.count()

    def __init__(
        self,
        name: str,
        history: History,
        chance: Chance,
        *,
        loop: asyncio.AbstractEventLoop,
        on_fault: Callable[[str], object] = lambda word: None,
        deaths: Deaths | None = None,
        content: Path | None = None,
        is_replica: bool = False,
    ) -> None:
        """Creates the database. `on_fault` is called when a fault has an effect. `deaths` is shared with other databases.

        `content` is a file in WAL mode with the initial tables and rows; without it, the database is empty. `is_replica` makes
        the database read-only. Call `close` when the database is no longer used.
        """
        self.name = name
        self.faults = DatabaseFaults(loop.time, chance, on_fault, new_deaths() if deaths is None else deaths)
        self.observers: list[OnCommit] = []
        """Functions called after each database commit that changed rows."""
        self.path = scratch_folder() / f"{next(self._numbers)}-{name}.db"
        if content is None:
            with closing(sqlite3.connect(self.path)) as new:
                new.execute("PRAGMA journal_mode=WAL")  # readers do not block a writer, not even those of dead processes
        else:
            shutil.copyfile(content, self.path)
        self._file = DatabaseFile(
            name, self.path, loop, history, chance, self.faults, self._committed, is_replica, self.check, self.rows_of
        )
        self._engines: list[Engine] = []
        self._reader: sqlite3.Connection | None = None
        self._lockers = 0
        self._locker: sqlite3.Connection | None = None

    def engine_for(self, process: SimulatedProcess) -> Engine:
        """Returns an engine for a process. Its connections end with the process."""
        gate = DatabaseGate(self._file, process)
        process.on_death(gate.break_all)
        engine = self.new_engine(gate.connect)
        self._engines.append(engine)
        return engine

    def reader(self) -> sqlite3.Connection:
        """Returns a connection that reads committed rows. Faults do not affect it."""
        if self._reader is None:
            self._reader = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, isolation_level=None)
        return self._reader

    def lock(self) -> None:
        """Acquires the write lock for another writer as soon as the lock is free. `unlock` releases the lock.

        Several locks may overlap.
        """
        self._lockers += 1
        if self._lockers == 1:
            self._begin_to_lock()

    def unlock(self) -> None:
        """Releases the other writer's lock. Call it once for each `lock`."""
        self._lockers = max(self._lockers - 1, 0)
        if self._lockers == 0 and self._locker is not None:
            self._locker.close()
            self._locker = None

    def end_faults(self) -> None:
        """Ends all faults, and releases the other writer's lock."""
        self.faults.end_all()
        self._lockers = 0
        self.unlock()

    def close(self) -> None:
        """Ends all faults, closes all connections and removes the file."""
        self.end_faults()
        for engine in self._engines:
            engine.dispose()
        if self._reader is not None:
            self._reader.close()
        for ending in ("", "-wal", "-shm"):
            Path(f"{self.path}{ending}").unlink(missing_ok=True)

    # A database of one application may replace these.

    def new_engine(self, connect: Connect) -> Engine:
        """Returns an engine that opens its connections with `connect`.

        Its transactions begin with the write lock, so that they wait for each other and do not fail.
        """
        engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool, pool_size=20, max_overflow=-1)
        event.listen(engine, "connect", _set_busy_timeout)
        event.listen(engine, "begin", _begin)
        return engine

    def check(self, sql: str, parameters: Parameters) -> None:
        """Checks each statement before it runs. It may raise a driver's error, like a constraint."""

    def rows_of(self, sql: str, parameters: Parameters) -> list[RowNote] | None:
        """Returns the notes about the rows that a statement writes, or None for another statement."""
        return written_rows(sql, parameters)

    def _begin_to_lock(self) -> None:
        if self._lockers == 0 or self._locker is not None:
            return
        locker = sqlite3.connect(self.path, isolation_level=None, timeout=0)
        try:
            locker.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            locker.close()
            self._file.loop.call_later(_TRIES_TO_LOCK_EVERY_S, self._begin_to_lock, context=contextvars.Context())
        else:
            self._locker = locker

    def _committed(self) -> None:
        for observer in self.observers:
            observer(self.name, self.reader)


def _set_busy_timeout(connection: Any, _record: Any) -> None:
    cast(SimulatedConnection, connection).busy_timeout_s = _BUSY_TIMEOUT_S


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
