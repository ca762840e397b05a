"""A connection to SQLite, as its driver gives it, whose every statement passes through a gate of the simulated world."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, Self, TypeVar

T = TypeVar("T")

Parameters = Sequence[Any]


class StatementGate(Protocol):
    """What happens around each statement: faults, waits and notes."""

    @property
    def is_open(self) -> bool:
        """False after the death of the process whose connection it is."""

    def execute(self, connection: SimulatedConnection, sql: str, parameters: Parameters, work: Callable[[], T]) -> T:
        """Runs a statement by `work`."""

    def commit(self, connection: SimulatedConnection, work: Callable[[], None]) -> None:
        """Runs a database commit by `work`."""


class SimulatedConnection(sqlite3.Connection):
    """A connection of one simulated process. Nothing of a dead process changes the database, not even a rollback."""

    gate: StatementGate
    busy_timeout_s = 0.0
    """How long a statement waits for the locks of others, in the world's time."""

    def cursor(self, factory: Any = None) -> SimulatedCursor:  # type: ignore[override]
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
        """Rolls back, unless the connection is broken or its process dead."""
        if self.gate.is_open:
            super().rollback()


class SimulatedCursor(sqlite3.Cursor):
    """A cursor of such a connection."""

    connection: SimulatedConnection

    def execute(self, sql: str, parameters: Any = ()) -> Self:
        """Runs a statement through the gate. Settings that slow down a short world have no effect."""
        if sql.startswith("PRAGMA"):
            return self if self._is_left_out(sql) else super().execute(sql, parameters)
        execute = super().execute
        return self.connection.gate.execute(self.connection, sql, parameters, lambda: execute(sql, parameters))

    def executemany(self, sql: str, parameters: Iterable[Any]) -> Self:
        """Runs a statement for each row through the gate, as one step."""
        rows = list(parameters)
        flat = [value for row in rows for value in row]
        execute = super().executemany
        return self.connection.gate.execute(self.connection, sql, flat, lambda: execute(sql, rows))

    def _is_left_out(self, sql: str) -> bool:
        """A wait for locks takes the world's time, and the database is in memory: no process survives a loss of power."""
        name, _, value = sql.removeprefix("PRAGMA ").partition("=")
        if name == "busy_timeout" and value:
            self.connection.busy_timeout_s = int(value) / 1000
        return bool(value) and name in ("busy_timeout", "journal_mode", "synchronous")
