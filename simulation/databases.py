"""The databases of the simulated world: SQLite files in memory, with production's engines, and with faults.

What the model leaves out: PostgreSQL, its isolation levels and its row locks. A writer excludes all others, as SQLite has it.
A pool has any number of connections.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import itertools
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

from greenlet import getcurrent
from sqlalchemy import URL, Engine, QueuePool

from credit_service.adapters.tables import MIGRATIONS as CREDIT_MIGRATIONS
from inventory_service.adapters.tables import MIGRATIONS as INVENTORY_MIGRATIONS
from order_service.adapters.tables import MIGRATIONS as ORDER_MIGRATIONS
from rocketmq_broker.testing.simulation.chance import stream
from rocketmq_broker.testing.simulation.history import History
from rocketmq_broker.testing.simulation.process import Killed, Process
from rocketmq_broker.testing.simulation.world import STARTS_MS
from rocketmq_broker.world import Chance, World, in_world
from service_runtime.database.engine import prepare_sqlite
from service_runtime.database.opening import open_database
from simulation.database_faults import CommitFate, DatabaseFaults, Die, DyingStep, broken_connection, locked
from simulation.sqlite_connection import Parameters, SimulatedConnection

T = TypeVar("T")

MIGRATIONS_OF: Final = {
    "orders-database": ORDER_MIGRATIONS,
    "credits-database": CREDIT_MIGRATIONS,
    "inventory-database": INVENTORY_MIGRATIONS,
}
"""The migrations of each database, by its name."""

OnCommit = Callable[[str, Callable[[], sqlite3.Connection]], object]
"""Called after each database commit that changed rows, with the database's name and a function that returns its `reader`."""

_BUSY_PAUSES_S: Final = (0.001, 0.002, 0.005, 0.010, 0.015, 0.020, 0.025, 0.025, 0.025, 0.050, 0.050, 0.100)
"""SQLite's own pauses while it waits for a lock."""
_STATEMENT_WAITS: Final = 0.05
_COMMIT_WAITS: Final = 0.5
_LONGEST_STATEMENT_S: Final = 0.005
_LONGEST_COMMIT_S: Final = 0.02
_NAMED_TABLES: Final = ("transactions", "orders", "credits", "shipments")
_INSERT: Final = re.compile(r"INSERT INTO (\w+) \(([^)]*)\)")
_KEYS: Final = ("order_id", "transaction_id")


@dataclass(frozen=True)
class _Template:
    """A migrated database, made once in an interpreter, and what all engines of its copies share."""

    path: Path
    engine: Engine
    compiled: dict[Any, Any]


@cache
def scratch_folder() -> Path:
    """Returns this interpreter's folder for databases, in memory where the system has a place for it."""
    memory = Path("/dev/shm")
    folder = tempfile.mkdtemp(prefix="simulated-", dir=memory if memory.is_dir() else None)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@cache
def _template(migrations: str) -> _Template:
    path = scratch_folder() / f"template-{migrations.partition(':')[0]}.db"
    world = World(wall_ns=lambda: STARTS_MS * 1_000_000, nonce=stream(0, migrations).randbytes)
    with in_world(world):  # the migrations give the database its identity
        engine = open_database(f"sqlite:///{path}", migrations=migrations, start_timeout_s=10)
    engine.dispose()
    return _Template(path, engine, {})


class SimulatedDatabase:
    """A database that outlives the processes that use it, and the machines on which they run."""

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
    ) -> None:
        """`name` is one of MIGRATIONS_OF, unless `migrations` says what it is. `on_fault` is told of each effect of a fault.

        `content` is a file whose rows it begins with; else it is empty. Use `close` at the world's end.
        """
        self.name = name
        self.faults = DatabaseFaults(loop.time, chance, on_fault)
        self.observers: list[OnCommit] = []
        """Each is called after each database commit that changed rows."""
        self._migrations = migrations or MIGRATIONS_OF[name]
        self._history, self._chance, self._loop = history, chance, loop
        self._template = _template(self._migrations)
        self._path = scratch_folder() / f"{next(self._numbers)}-{name}.db"
        shutil.copyfile(content or self._template.path, self._path)
        self._engines: list[Engine] = []
        self._reader: sqlite3.Connection | None = None
        self._locker: sqlite3.Connection | None = None

    def engine_for(self, process: Process) -> Engine:
        """Returns an engine as `service_runtime.database.engine` makes it. Its connections end with the process."""
        gate = _Gate(self, process)
        pool = QueuePool(gate.connect, pool_size=20, max_overflow=-1, dialect=self._template.engine.dialect)
        engine = Engine(
            pool,
            self._template.engine.dialect,
            URL.create("sqlite", database=str(self._path)),
            hide_parameters=True,
            execution_options={"compiled_cache": self._template.compiled},
        )
        prepare_sqlite(engine)
        process.on_death(gate.break_all)
        self._engines.append(engine)
        return engine

    def reader(self) -> sqlite3.Connection:
        """Returns the connection of those who judge. It reads what is committed, and notices no fault."""
        if self._reader is None:
            self._reader = sqlite3.connect(f"file:{self._path}?mode=ro", uri=True, isolation_level=None)
        return self._reader

    def lock(self) -> None:
        """Begins to write as another writer, until `unlock`. Waits for nobody: a lock held at this moment is lock enough."""
        self._locker = sqlite3.connect(self._path, isolation_level=None, timeout=0)
        try:
            self._locker.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            self.unlock()

    def unlock(self) -> None:
        """Ends the other writer."""
        if self._locker is not None:
            self._locker.close()
            self._locker = None

    def copied(self) -> SimulatedDatabase:
        """Returns a new database with the rows of this moment: an old copy, as soon as this one changes."""
        path = self._path.with_suffix(".copy")
        with sqlite3.connect(path) as to:
            self.reader().backup(to)
        to.close()
        copy = SimulatedDatabase(
            f"{self.name}-copy", self._history, self._chance, loop=self._loop, migrations=self._migrations, content=path
        )
        path.unlink()
        return copy

    def close(self) -> None:
        """Closes everything, and removes the file."""
        self.unlock()
        for engine in self._engines:
            engine.dispose()
        if self._reader is not None:
            self._reader.close()
        for ending in ("", "-wal", "-shm"):
            Path(f"{self._path}{ending}").unlink(missing_ok=True)

    # for the gates

    def opened(self, gate: _Gate) -> SimulatedConnection:
        """Opens a connection."""
        connection = sqlite3.connect(
            self._path, timeout=0, isolation_level=None, factory=SimulatedConnection, cached_statements=256
        )
        connection.gate = gate
        sqlite3.Cursor(connection).execute("PRAGMA synchronous=OFF").close()
        return connection

    def note_commit(self, process: str, rows: list[tuple[str, tuple[str, ...]]]) -> None:
        """Notes a commit that changed rows, and calls the observers."""
        for text, keys in rows:
            self._history.note(process, "commit", f"{self.name}: {text}", keys)
        for observer in self.observers:
            observer(self.name, self.reader)

    def mix(self, *parts: str) -> None:
        """Mixes a step into the history."""
        self._history.mix(self.name, *parts)

    def die(self, die: Die) -> None:
        """Lets a process die as soon as the thread that asks for it gives way."""
        self._loop.call_soon(die, context=contextvars.Context())

    def pause_s(self, likely: float, longest_s: float) -> float:
        """Returns how long a step takes: mostly no time, so that a world is cheap."""
        return self._chance.random() * longest_s if self._chance.random() < likely else 0.0


class _Gate:
    """One process's way to one database."""

    def __init__(self, database: SimulatedDatabase, process: Process) -> None:
        self._database = database
        self._faults = database.faults
        self._process = process
        self._connections: dict[SimulatedConnection, list[tuple[str, tuple[str, ...]]]] = {}
        """Each with the rows that its transaction has written."""

    @property
    def is_open(self) -> bool:
        return self._process.is_alive

    def connect(self) -> SimulatedConnection:
        self._pass("connect")
        connection = self._database.opened(self)
        self._connections[connection] = []
        return connection

    def break_all(self) -> None:
        for connection in self._connections:
            # A cursor with rows left to read would keep the transaction, and its locks, beyond the end of the connection.
            sqlite3.Connection.rollback(connection)
            sqlite3.Connection.close(connection)
        self._connections.clear()

    def execute(self, connection: SimulatedConnection, sql: str, parameters: Parameters, work: Callable[[], T]) -> T:
        with self._dying():
            self._pass(sql)
            if pause_s := self._database.pause_s(_STATEMENT_WAITS, _LONGEST_STATEMENT_S):
                self._process.threads.sleep(pause_s)
            result = self._unlocked(connection, work)
            self._database.mix(self._process.name, sql, repr(parameters))
            if sql.startswith("INSERT"):
                self._connections[connection] += _written(sql, parameters)
            elif sql.startswith("BEGIN"):
                self._connections[connection] = []
            elif sql.startswith("UPDATE orders"):
                self._connections[connection].append(("orders changed", tuple(p for p in parameters if _is_id(p))))
        return result

    def commit(self, connection: SimulatedConnection, work: Callable[[], None]) -> None:
        with self._dying():
            self._pass("COMMIT")
            self._wait(_COMMIT_WAITS)
            fate = self._faults.fate_of_commit()
            if fate is CommitFate.IS_LOST:
                raise broken_connection()
            self._unlocked(connection, work)
            rows, self._connections[connection] = self._connections[connection], []
            self._database.mix(self._process.name, "COMMIT")
            if rows:
                self._database.note_commit(self._process.name, rows)
            self._wait(_COMMIT_WAITS)
            if fate is CommitFate.LOSES_ANSWER:
                raise broken_connection()

    def _pass(self, step: str) -> None:
        """Waits while the database hangs. Raises the driver's error if it refuses."""
        if not self._process.is_alive:
            raise Killed
        if (ends_s := self._faults.hang_ends_s()) is not None:
            self._process.threads.sleep(ends_s - self._faults.now_s())
        if self._faults.is_refused(self._process.name):
            self._database.mix(self._process.name, "refused", step)
            raise broken_connection()

    def _wait(self, likely: float) -> None:
        if pause_s := self._database.pause_s(likely, _LONGEST_COMMIT_S):
            self._process.threads.sleep(pause_s)

    def _unlocked(self, connection: SimulatedConnection, work: Callable[[], T]) -> T:
        """Does the work, after a wait for the locks of others as SQLite does it, but in the world's time."""
        waited_s = 0.0
        for tries in itertools.count():
            try:
                return work()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorname != "SQLITE_BUSY":
                    raise
                if waited_s >= connection.busy_timeout_s:
                    raise locked() from None
            self._faults.fired("locked")
            pause_s = _BUSY_PAUSES_S[min(tries, len(_BUSY_PAUSES_S) - 1)]
            self._process.threads.sleep(pause_s)
            waited_s += pause_s
        raise AssertionError("the work is done, or fails")

    @contextmanager
    def _dying(self) -> Iterator[None]:
        """Lets the process die before or after the step, if a fault says so."""
        due = self._faults.deaths_of(self._process.name) if self._process.is_alive else []
        if any(death.is_before for death in due):
            self._die(due)
        yield
        if due:
            self._die(due)

    def _die(self, due: list[DyingStep]) -> None:
        self._faults.fired("kill")
        self._database.die(due[0].die)
        thread = getcurrent()
        if thread.parent is not None:
            # Nothing of the dead process goes on, not even a `finally`; the world ends what is left.
            thread.parent.switch()
        raise Killed


@cache
def _columns(sql: str) -> tuple[str, tuple[int, ...], int, int | None] | None:
    """Returns of an INSERT the table, the places of the keys in a row, the row's length, and the place of its state or kind."""
    found = _INSERT.match(sql)
    if found is None or found[1] not in _NAMED_TABLES:
        return None
    names = [name.strip() for name in found[2].split(",")]
    told = next((names.index(name) for name in ("state", "kind") if name in names), None)
    return found[1], tuple(names.index(key) for key in _KEYS if key in names), len(names), told


def _written(sql: str, parameters: Parameters) -> list[tuple[str, tuple[str, ...]]]:
    if (columns := _columns(sql)) is None:
        return []
    table, places, length, told = columns
    rows = [parameters[begin : begin + length] for begin in range(0, len(parameters) - length + 1, length)]
    return [
        (f"{table} {row[told]}" if told is not None else table, tuple(str(row[place]) for place in places if row[place]))
        for row in rows
    ]


def _is_id(value: object) -> bool:
    return isinstance(value, str) and len(value) == 36 and value.count("-") == 4
