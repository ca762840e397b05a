"""Intercepts the statements that a process sends to a database. Records each statement, and injects faults and delays."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, NoReturn, TypeVar

from greenlet import getcurrent

from lab.simulation.databases.connection import Parameters, SimulatedConnection
from lab.simulation.databases.faults import CommitOutcome, DatabaseFaults, DyingStep, broken_connection, locked
from lab.simulation.databases.rules import RuledRow, refused_by_rule
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
_NAMED_TABLES: Final = ("transactions", "orders", "credits", "shipments", "rocketmq_inbox")
_RULED_TABLES: Final = ("orders", "credits", "shipments")
_OF_INBOX: Final = ("DELETE FROM rocketmq_inbox", "UPDATE rocketmq_inbox")
_INSERT: Final = re.compile(r"INSERT INTO (\w+) \(([^)]*)\)")
_KEYS: Final = ("order_id", "transaction_id")

_Note = tuple[str, tuple[str, ...]]


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
    is_replica: bool = False
    """True if the database is read-only."""

    def pause_s(self, likely: float, longest_s: float) -> float:
        """Returns a random duration in seconds. With the probability `likely` it is up to `longest_s`, otherwise 0."""
        return self.chance.random() * longest_s if self.chance.random() < likely else 0.0


class DatabaseGate:
    """The gate between one process and one database (`lab.simulation.databases.connection.StatementGate`)."""

    def __init__(self, file: DatabaseFile, process: SimulatedProcess) -> None:
        """Creates a gate without connections. Call `break_all` when the process is killed."""
        self._file = file
        self._faults = file.faults
        self._process = process
        self._connections: dict[SimulatedConnection, list[tuple[int, list[_Note]]]] = {}
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
            if self._faults.rules and self._faults.is_against_a_rule(_ruled(sql, parameters)):
                raise refused_by_rule()
            changes = connection.total_changes
            result = self._unlocked(connection, work)
            self._file.history.mix(self._file.name, self._process.name, sql, repr([*map(_readable, parameters)]))
            if sql.startswith("INSERT"):
                self._connections[connection].append((changes, _written(sql, parameters)))
            elif sql.startswith("BEGIN"):
                self._connections[connection] = []
            elif sql.startswith(_OF_INBOX):
                self._connections[connection].append((changes, [("inbox changed", ())]))
            elif sql.startswith("UPDATE orders"):
                note = "orders changed", tuple(p for p in parameters if _is_id(p))
                self._connections[connection].append((changes, [note]))
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
        if self._faults.is_refused(self._process.name):
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


@cache
def _columns(sql: str) -> tuple[str, tuple[int, ...], int, int | None] | None:
    """Parses an INSERT: returns the table, the positions of the keys, the row's length, and the position of state or kind."""
    found = _INSERT.match(sql)
    if found is None or found[1] not in _NAMED_TABLES:
        return None
    names = [name.strip() for name in found[2].split(",")]
    told = next((names.index(name) for name in ("state", "kind") if name in names), None)
    return found[1], tuple(names.index(key) for key in _KEYS if key in names), len(names), told


def _written(sql: str, parameters: Parameters) -> list[_Note]:
    if (columns := _columns(sql)) is None:
        return []
    table, places, length, told = columns
    rows = [parameters[begin : begin + length] for begin in range(0, len(parameters) - length + 1, length)]
    return [
        (f"{table} {row[told]}" if told is not None else table, tuple(str(row[place]) for place in places if row[place]))
        for row in rows
    ]


def _ruled(sql: str, parameters: Parameters) -> Iterator[RuledRow]:
    """Yields the rows of an INSERT into a table that has rules: orders, credits or shipments."""
    found = _INSERT.match(sql)
    if found is None or found[1] not in _RULED_TABLES:
        return
    names = [name.strip() for name in found[2].split(",")]
    order_id, amount = names.index("order_id"), names.index("amount_cents") if "amount_cents" in names else None
    for begin in range(0, len(parameters) - len(names) + 1, len(names)):
        yield RuledRow(str(parameters[begin + order_id]), None if amount is None else int(parameters[begin + amount]))


def _changed(statements: Sequence[tuple[int, list[_Note]]], changes: int) -> Iterator[_Note]:
    """Yields the rows of those statements that changed the database.

    `statements` contains, for each statement, the connection's total number of changes before the statement, and its
    rows. `changes` is the total number of changes after the last statement.
    """
    ends = [before for before, _ in statements[1:]] + [changes]
    for (before, rows), end in zip(statements, ends, strict=True):
        if end > before:
            yield from rows


def _readable(value: object) -> object:
    """Returns a parameter in a form whose `repr` is the same in each simulation."""
    return bytes(value) if isinstance(value, memoryview) else value


def _is_id(value: object) -> bool:
    return isinstance(value, str) and len(value) == 36 and value.count("-") == 4
