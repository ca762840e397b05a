"""SQLite connections whose statements pass through a gate, which adds faults and delays."""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, Self, TypeVar

T = TypeVar("T")

Parameters = Sequence[Any]


class StatementGate(Protocol):
    """The interface of a gate, which records each statement and runs it with faults and delays."""

    @property
    def is_open(self) -> bool:
        """True if the connection's process is running."""

    def execute(self, connection: "SimulatedConnection", sql: str, parameters: Parameters, work: Callable[[], T]) -> T:
        """Runs a statement by calling `work`, and returns the result."""

    def commit(self, connection: "SimulatedConnection", work: Callable[[], None]) -> None:
        """Runs a database commit by calling `work`."""


class SimulatedConnection(sqlite3.Connection):
    """A connection of a simulated process.

    After the process is killed, its connections cannot change the database, not even by a rollback.
    """

    gate: StatementGate
    busy_timeout_s = 0.0
    """The maximum time in simulated seconds that a statement waits for locks of other connections."""

    def cursor(self, factory: Any = None) -> "SimulatedCursor":  # type: ignore[override]
        """Returns a cursor whose statements pass through the gate."""
        return super().cursor(factory or SimulatedCursor)

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        """Runs a statement on a new cursor."""
        return self.cursor().execute(sql, parameters)

    def commit(self) -> None:
        """Commits through the gate."""
        if self.in_transaction or not self.gate.is_open:
            self.gate.commit(self, super().commit)

    def rollback(self) -> None:
        """Rolls back, unless the connection is broken or its process has been killed."""
        if self.gate.is_open:
            super().rollback()


class SimulatedCursor(sqlite3.Cursor):
    """A cursor of a SimulatedConnection."""

    connection: SimulatedConnection

    def execute(self, sql: str, parameters: Any = ()) -> Self:
        """Runs a statement through the gate. Ignores settings that would slow down the simulation."""
        if sql.startswith("PRAGMA"):
            return self if self._is_left_out(sql) else super().execute(sql, parameters)
        execute = super().execute
        return self.connection.gate.execute(self.connection, sql, parameters, lambda: execute(sql, parameters))

    def executemany(self, sql: str, parameters: Iterable[Any]) -> Self:
        """Runs a statement for each row. All rows pass through the gate as one step."""
        rows = list(parameters)
        flat = [value for row in rows for value in row]
        execute = super().executemany
        return self.connection.gate.execute(self.connection, sql, flat, lambda: execute(sql, rows))

    def _is_left_out(self, sql: str) -> bool:
        """Returns True if the statement changes a setting that SQLite does not need in a world.

        Waits for locks are simulated, and the database is in memory.
        """
        name, _, value = sql.removeprefix("PRAGMA ").partition("=")
        if name == "busy_timeout" and value:
            self.connection.busy_timeout_s = int(value) / 1000
        return bool(value) and name in ("busy_timeout", "journal_mode", "synchronous")
