"""Simulates the services' databases with SQLite files in memory. The engines are those of production, with faults added.

The model omits PostgreSQL with its isolation levels and row locks. As in SQLite, a writer excludes all other writers. A pool has
any number of connections.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

from sqlalchemy import URL, Engine, QueuePool

from credit_service.adapters.tables import MIGRATIONS as CREDIT_MIGRATIONS
from inventory_service.adapters.tables import MIGRATIONS as INVENTORY_MIGRATIONS
from lab.simulation.databases.faults import DatabaseFaults
from lab.simulation.databases.gate import DatabaseFile, DatabaseGate
from lab.simulation.databases.template import scratch_folder, template
from order_service.adapters.tables import MIGRATIONS as ORDER_MIGRATIONS
from rocketmq_broker.testing.simulation.history import History
from rocketmq_broker.testing.simulation.process import SimulatedProcess
from rocketmq_broker.world import Chance
from service_runtime.database.engine import prepare_sqlite

MIGRATIONS_OF: Final = {
    "orders-database": ORDER_MIGRATIONS,
    "credits-database": CREDIT_MIGRATIONS,
    "inventory-database": INVENTORY_MIGRATIONS,
}
"""Maps the name of each database to its migrations."""

_WAITING: Final = "SELECT 1 FROM rocketmq_inbox WHERE consumer = ? AND status IN ('NEW', 'FAILED') LIMIT 1"
_TRIES_TO_LOCK_EVERY_S: Final = 0.001

OnCommit = Callable[[str, Callable[[], sqlite3.Connection]], object]
"""A callback for each database commit that changed rows, with the database's name and a function that returns its `reader`."""


class SimulatedDatabase:
    """A simulated database, which survives failures of the processes that use it and of their machines."""

    _numbers = itertools.count()

    def __init__(
        self,
        name: str,
        history: History,
        chance: Chance,
        *,
        loop: asyncio.AbstractEventLoop,
        on_fault: Callable[[str], object] = lambda word: None,
        migrations: str | None = None,
        content: Path | None = None,
        is_replica: bool = False,
    ) -> None:
        """Creates the database. `name` is a key of MIGRATIONS_OF, unless `migrations` is given.

        `on_fault` is called when a fault has an effect.

        `content` is a file with the initial rows. Without it, the database has no rows. `is_replica` makes the database
        read-only. Call `close` when the database is no longer used.
        """
        self.name = name
        self.faults = DatabaseFaults(loop.time, chance, on_fault)
        self.observers: list[OnCommit] = []
        """Functions called after each database commit that changed rows."""
        self._migrations = migrations or MIGRATIONS_OF[name]
        self._template = template(self._migrations)
        path = scratch_folder() / f"{next(self._numbers)}-{name}.db"
        shutil.copyfile(content or self._template.path, path)
        self._file = DatabaseFile(name, path, loop, history, chance, self.faults, self._tell, is_replica)
        self._engines: list[Engine] = []
        self._reader: sqlite3.Connection | None = None
        self._lockers = 0
        self._locker: sqlite3.Connection | None = None

    def engine_for(self, process: SimulatedProcess) -> Engine:
        """Returns an engine of `service_runtime.database.engine`. Its connections end with the process."""
        gate = DatabaseGate(self._file, process)
        pool = QueuePool(
            cast(Callable[[], Any], gate.connect), pool_size=20, max_overflow=-1, dialect=self._template.engine.dialect
        )
        engine = Engine(
            pool,
            self._template.engine.dialect,
            URL.create("sqlite", database=str(self._file.path)),
            hide_parameters=True,
            execution_options={"compiled_cache": self._template.compiled},
        )
        prepare_sqlite(engine)
        process.on_death(gate.break_all)
        self._engines.append(engine)
        return engine

    def reader(self) -> sqlite3.Connection:
        """Returns the connection that the simulation's checks use. It reads committed rows, and faults do not affect it."""
        if self._reader is None:
            self._reader = sqlite3.connect(f"file:{self._file.path}?mode=ro", uri=True, isolation_level=None)
        return self._reader

    def has_waiting(self, consumer: str) -> bool:
        """Returns True if the table `rocketmq_inbox` contains waiting messages of the consumer. Faults do not affect it."""
        return self.reader().execute(_WAITING, (consumer,)).fetchone() is not None

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

    def replica(self) -> SimulatedDatabase:
        """Returns a read-only copy with the current rows, like a replica that gets no more changes."""
        file, path = self._file, self._file.path.with_suffix(".copy")
        with sqlite3.connect(path) as to:
            self.reader().backup(to)
        to.close()
        copy = SimulatedDatabase(
            f"{self.name}-copy", file.history, file.chance, loop=file.loop, migrations=self._migrations, content=path,
            is_replica=True,
        )  # fmt: skip
        path.unlink()
        return copy

    def close(self) -> None:
        """Closes all connections and removes the file."""
        self._lockers = 0
        self.unlock()
        for engine in self._engines:
            engine.dispose()
        if self._reader is not None:
            self._reader.close()
        for ending in ("", "-wal", "-shm"):
            Path(f"{self._file.path}{ending}").unlink(missing_ok=True)

    def _begin_to_lock(self) -> None:
        if self._lockers == 0 or self._locker is not None:
            return
        locker = sqlite3.connect(self._file.path, isolation_level=None, timeout=0)
        try:
            locker.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            locker.close()
            self._file.loop.call_later(_TRIES_TO_LOCK_EVERY_S, self._begin_to_lock, context=contextvars.Context())
        else:
            self._locker = locker

    def _tell(self) -> None:
        for observer in self.observers:
            observer(self.name, self.reader)
