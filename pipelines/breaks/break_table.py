"""The table of breaks, in a SQLite file. Each run updates it in one transaction, and users edit it between runs.

A break is a difference that concerns an order, a customer's balance, or a record without an order. An open break keeps its
number, even if its class changes. A run that no longer finds a break closes it. A break that was closed manually stays closed
while it is unchanged. If its class, its cause or the money at stake changes, it is reopened with the same number.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any, Final

from pipelines.errors import BreaksUnusable
from pipelines.judging.classes import CONSISTENT

GONE: Final = "no longer found"
_SCHEMA: Final = """
    CREATE TABLE IF NOT EXISTS breaks (
        number INTEGER PRIMARY KEY AUTOINCREMENT, subject TEXT NOT NULL, finding TEXT NOT NULL, cause TEXT, currency TEXT,
        at_stake_cents INTEGER NOT NULL, first_seen_ms INTEGER NOT NULL, last_seen_ms INTEGER NOT NULL,
        owner TEXT NOT NULL DEFAULT '', note TEXT NOT NULL DEFAULT '', closed_at_ms INTEGER, closed_because TEXT
    );
    CREATE INDEX IF NOT EXISTS breaks_by_subject ON breaks (subject);
"""
_BUSY_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Break:
    """A break. Times are in milliseconds since the epoch."""

    number: int
    subject: str
    finding: str
    cause: str | None
    currency: str | None
    at_stake_cents: int
    first_seen_ms: int
    last_seen_ms: int
    owner: str
    note: str
    closed_at_ms: int | None
    closed_because: str | None


@dataclass(frozen=True, slots=True)
class FoundBreak:
    """The data of a break as a run found it."""

    subject: str
    finding: str
    cause: str | None
    currency: str | None
    at_stake_cents: int

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "FoundBreak":
        """Converts a row of a reconciliation's outcome."""
        return cls(_subject(row), row["finding"], row["cause"], row["currency"], int(row["at_stake_cents"] or 0))

    def is_as_in(self, known: Break) -> bool:
        """Returns True if class, cause and money at stake are the same as in `known`."""
        was = (known.finding, known.cause, known.currency, known.at_stake_cents)
        return was == (self.finding, self.cause, self.currency, self.at_stake_cents)


@dataclass(frozen=True, slots=True)
class Changes:
    """The counts of breaks that a run opened, found again and closed."""

    opened: int
    still_open: int
    closed: int


class BreakTable:
    """The table of breaks in a file. Each method runs in one transaction, and raises BreaksUnusable if the file is unusable."""

    def __init__(self, path: Path) -> None:
        """Stores the path. The first run creates the file."""
        self._path = path

    def update(self, rows: Iterable[Mapping[str, Any]], as_of_ms: int) -> Changes:
        """Opens, updates and closes breaks according to a run's findings.

        Raises BreaksUnusable if a later run has already been applied.
        """
        found = {one.subject: one for row in rows if row["finding"] not in CONSISTENT for one in [FoundBreak.of(row)]}
        with self._transaction() as connection:
            latest = connection.execute("SELECT MAX(last_seen_ms) FROM breaks").fetchone()[0]
            if latest is not None and latest > as_of_ms:
                raise BreaksUnusable(f"breaks {self._path}: the file was already written by a later run")
            known = {one.subject: one for one in _select(connection, "ORDER BY number")}
            before = {one.subject for one in known.values() if one.closed_at_ms is None}
            for one in found.values():
                _take_over(connection, one, known.get(one.subject), as_of_ms)
            gone = [(as_of_ms, GONE, subject) for subject in before - found.keys()]
            statement = "UPDATE breaks SET closed_at_ms = ?, closed_because = ? WHERE subject = ? AND closed_at_ms IS NULL"
            connection.executemany(statement, gone)
            still_open = connection.execute("SELECT COUNT(*) FROM breaks WHERE closed_at_ms IS NULL").fetchone()[0]
        return Changes(still_open - len(before & found.keys()), still_open, len(gone))

    def list(self, *, with_closed: bool = False, owner: str | None = None, finding: str | None = None) -> list[Break]:
        """Returns the breaks, sorted by money at stake, highest first. Includes closed breaks only if `with_closed` is True."""
        with self._transaction() as connection:
            breaks = _select(connection, "" if with_closed else "WHERE closed_at_ms IS NULL")
        chosen = [one for one in breaks if owner in (None, one.owner) and finding in (None, one.finding)]
        return sorted(chosen, key=lambda one: (-one.at_stake_cents, one.number))

    def find(self, number: int) -> Break:
        """Returns the break with this number. Raises BreaksUnusable if it does not exist."""
        with self._transaction() as connection:
            return self._find(connection, number)

    def assign(self, number: int, owner: str, note: str | None = None) -> Break:
        """Assigns the break to an owner; "" removes the owner. Keeps the current note if none is given."""
        with self._transaction() as connection:
            self._find(connection, number)
            connection.execute("UPDATE breaks SET owner = ?, note = COALESCE(?, note) WHERE number = ?", (owner, note, number))
            return self._find(connection, number)

    def close(self, number: int, reason: str, now_ms: int) -> Break:
        """Closes the break manually. Raises BreaksUnusable if it is already closed."""
        with self._transaction() as connection:
            if self._find(connection, number).closed_at_ms is not None:
                raise BreaksUnusable(f"break {number} is already closed")
            connection.execute(
                "UPDATE breaks SET closed_at_ms = ?, closed_because = ? WHERE number = ?", (now_ms, reason, number)
            )
            return self._find(connection, number)

    def _find(self, connection: sqlite3.Connection, number: int) -> Break:
        found = _select(connection, "WHERE number = ?", number)
        if not found:
            raise BreaksUnusable(f"no break has the number {number}")
        return found[0]

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._path, timeout=_BUSY_S, isolation_level=None)) as connection:
                connection.executescript(_SCHEMA)
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                except BaseException:
                    connection.execute("ROLLBACK")
                    raise
                connection.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            raise BreaksUnusable(f"breaks {self._path}: {error}") from None


def _take_over(connection: sqlite3.Connection, found: FoundBreak, known: Break | None, as_of_ms: int) -> None:
    if known is None or (known.closed_at_ms is not None and known.closed_because == GONE):
        values = (*astuple(found), as_of_ms, as_of_ms)
        connection.execute(
            "INSERT INTO breaks (subject, finding, cause, currency, at_stake_cents, first_seen_ms, last_seen_ms)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            values,
        )
        return
    connection.execute("UPDATE breaks SET last_seen_ms = ? WHERE number = ?", (as_of_ms, known.number))
    if not found.is_as_in(known):
        connection.execute(
            "UPDATE breaks SET finding = ?, cause = ?, currency = ?, at_stake_cents = ?, closed_at_ms = NULL,"
            " closed_because = NULL WHERE number = ?",
            (found.finding, found.cause, found.currency, found.at_stake_cents, known.number),
        )


def _select(connection: sqlite3.Connection, where: str, *values: object) -> list[Break]:
    columns = ", ".join(field.name for field in fields(Break))
    return [Break(*row) for row in connection.execute(f"SELECT {columns} FROM breaks {where}", values)]


def _subject(row: Mapping[str, Any]) -> str:
    if row["order_id"] is not None:
        return f"order {row['order_id']}"
    if row["transaction_id"] is not None:
        return f"record {row['transaction_id']}"
    return f"customer {row['customer']}"
