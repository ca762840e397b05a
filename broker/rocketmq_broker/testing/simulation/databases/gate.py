"""Intercepts the statements that a process sends to a database. Records each statement, and injects faults and delays."""

import asyncio
import contextvars
import itertools
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn, TypeVar

from greenlet import getcurrent

from rocketmq_broker.testing.simulation.databases.connection import Parameters, SimulatedConnection
from rocketmq_broker.testing.simulation.databases.faults import (
    CommitOutcome,
    DatabaseFaults,
    DyingStep,
    broken_connection,
    locked,
)
from rocketmq_broker.testing.simulation.history import History
from rocketmq_broker.testing.simulation.process import Killed, SimulatedProcess
from rocketmq_broker.world import Chance

T = TypeVar("T")

_BUSY_PAUSES_S: Final = (0.001, 0.002, 0.005, 0.010, 0.015, 0.020, 0.025, 0.025, 0.025, 0.050, 0.050, 0.100)
"""The pauses in seconds after which SQLite tries to get a lock again."""
_STATEMENT_WAITS: Final = 0.05
_COMMIT_WAITS: Final = 0.5
_MAX_STATEMENT_S: Final = 0.005
_MAX_COMMIT_S: Final = 0.02

RowNote = tuple[str, tuple[str, ...]]
"""A readable text about written rows, and the keys that it concerns."""

_WRITE: Final = re.compile(r"(INSERT(?: OR \w+)? INTO|UPDATE|DELETE FROM)\s+\W?(\w+)", re.IGNORECASE)
_MAX_KEY: Final = 64
"""The maximum length of a string parameter that counts as a key."""


def written_rows(sql: str, parameters: Parameters) -> list[RowNote] | None:
    """Returns a note with the table and the short string parameters of a write, or None for another statement."""
    if (found := _WRITE.match(sql)) is None:
        return None
    keys = dict.fromkeys(value for value in parameters if isinstance(value, str) and len(value) <= _MAX_KEY)
    return [(f"{found[1].partition(' ')[0].lower()} {found[2]}", tuple(keys))]


@dataclass(frozen=True)
class DatabaseFile:
    """The state shared by all gates of one database."""

    name: str
    path: Path
    loop: asyncio.AbstractEventLoop
    history: History
    chance: Chance
    faults: DatabaseFaults
    on_commit: Callable[[], object]
    """Called after each database commit that changed rows."""
    is_replica: bool
    """True if the database is read-only."""
    check: Callable[[str, Parameters], object]
    """Called with each statement before it runs. It may raise a driver's error, like a constraint."""
    notes_of: Callable[[str, Parameters], list[RowNote] | None]
    """Returns the notes that the history gets when the statement is committed, or None if it writes nothing."""

    def pause_s(self, likely: float, longest_s: float) -> float:
        """Returns a random duration in seconds. With the probability `likely` it is up to `longest_s`, otherwise 0."""
        return self.chance.random() * longest_s if self.chance.random() < likely else 0.0


class DatabaseGate:
    """The gate between one process and one database (`rocketmq_broker.testing.simulation.databases.connection.StatementGate`)."""

    def __init__(self, file: DatabaseFile, process: SimulatedProcess) -> None:
        """Creates a gate without connections. Call `break_all` when the process is killed."""
        self._file = file
        self._faults = file.faults
        self._process = process
        self._connections: dict[SimulatedConnection, list[tuple[int, list[RowNote]]]] = {}
        """The connections. Each has a list of the rows that its open transaction has written."""

    @property
    def is_open(self) -> bool:
        """True until the process is killed."""
        return self._process.is_alive

    def connect(self) -> SimulatedConnection:
        """Opens a connection. Raises the driver's error if the database refuses it."""
        self._pass("connect")
        path = self._file.path
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, factory=SimulatedConnection, cached_statements=256)
        connection.gate = self
        sqlite3.Cursor(connection).execute("PRAGMA synchronous=OFF").close()
        if self._file.is_replica:
            sqlite3.Cursor(connection).execute("PRAGMA query_only=ON").close()
        self._connections[connection] = []
        return connection

    def break_all(self) -> None:
        """Closes all connections, and rolls back their open transactions."""
        for connection in self._connections:
            # A cursor with rows left to read would keep the transaction, and its locks, beyond the end of the connection.
            with suppress(sqlite3.ProgrammingError):  # The connection is already closed.
                sqlite3.Connection.rollback(connection)
                sqlite3.Connection.close(connection)
        self._connections.clear()

    def execute(self, connection: SimulatedConnection, sql: str, parameters: Parameters, work: Callable[[], T]) -> T:
        """Runs a statement. The statement may wait, fail, or kill its process."""
        with self._dying():
            self._pass(sql)
            if pause_s := self._file.pause_s(_STATEMENT_WAITS, _MAX_STATEMENT_S):
                self._process.threads.sleep(pause_s)
            self._file.check(sql, parameters)
            changes = connection.total_changes
            result = self._unlocked(connection, work)
            self._file.history.mix(self._file.name, self._process.name, sql, repr([*map(_readable, parameters)]))
            if sql.startswith("BEGIN"):
                self._connections[connection] = []
            elif (notes := self._file.notes_of(sql, parameters)) is not None:
                self._connections[connection].append((changes, notes))
        return result

    def commit(self, connection: SimulatedConnection, work: Callable[[], None]) -> None:
        """Runs a database commit. The result may be lost."""
        with self._dying():
            self._pass("COMMIT")
            self._wait(_COMMIT_WAITS)
            outcome = self._faults.outcome_of_commit()
            if outcome is CommitOutcome.IS_LOST:
                raise broken_connection()
            self._unlocked(connection, work)
            statements, self._connections[connection] = self._connections[connection], []
            self._file.history.mix(self._file.name, self._process.name, "COMMIT")
            if any(rows for _, rows in statements):
                for text, keys in _changed(statements, connection.total_changes):
                    self._file.history.note(self._process.name, "row", f"{self._file.name}: {text}", keys)
                self._file.on_commit()
            self._wait(_COMMIT_WAITS)
            if outcome is CommitOutcome.LOSES_ANSWER:
                raise broken_connection()

    def _pass(self, step: str) -> None:
        """Waits while the database hangs. Raises the driver's error if the database refuses the statement."""
        if not self._process.is_alive:
            raise Killed
        if (ends_s := self._faults.hang_ends_s()) is not None:
            self._process.threads.sleep(ends_s - self._faults.now_s())
        if self._faults.is_refused():
            self._file.history.mix(self._file.name, self._process.name, "refused", step)
            raise broken_connection()

    def _wait(self, likely: float) -> None:
        if pause_s := self._file.pause_s(likely, _MAX_COMMIT_S):
            self._process.threads.sleep(pause_s)

    def _unlocked(self, connection: SimulatedConnection, work: Callable[[], T]) -> T:
        """Runs `work` after waiting for locks. The wait follows SQLite's algorithm, but in simulated time."""
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
        raise AssertionError("unreachable: the last try returns or raises")

    @contextmanager
    def _dying(self) -> Iterator[None]:
        """Kills the process before or after the step in the block, if a fault requires it."""
        due = self._faults.deaths_of(self._process.name) if self._process.is_alive else []
        if any(death.is_before for death in due):
            self._die(due)
        yield
        if due and not due[0].is_over():
            self._die(due)

    def _die(self, due: list[DyingStep]) -> None:
        die = due[0].die
        self._faults.fired("kill" if die is not None else "kill_child")
        die_here(self._file.loop, die or self._process.kill)


def die_here(loop: asyncio.AbstractEventLoop, die: Callable[[], object]) -> NoReturn:
    """Kills the process of the calling thread with `die`. No code of the process runs after this, not even a `finally`."""
    # The process dies as soon as this thread yields. The simulation ends its threads.
    loop.call_soon(die, context=contextvars.Context())
    thread = getcurrent()
    if thread.parent is not None:
        thread.parent.switch()
    raise Killed


def _changed(statements: Sequence[tuple[int, list[RowNote]]], changes: int) -> Iterator[RowNote]:
    """Yields the rows of the statements that changed rows. `statements` contains the number of changes before each statement."""
    ends = [before for before, _ in statements[1:]] + [changes]
    for (before, rows), end in zip(statements, ends, strict=True):
        if end > before:
            yield from rows


def _readable(value: object) -> object:
    """Returns a parameter in a form whose `repr` is the same in each simulation."""
    return bytes(value) if isinstance(value, memoryview) else value
