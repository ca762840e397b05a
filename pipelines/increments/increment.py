"""An incremental run. It judges only new histories and open ones, with the same result as a full run.

A history is the aggregate of all rows and messages of an order. It is open until it can no longer change.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow
import pyarrow.parquet
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.errors import StateUnusable
from pipelines.increments.marks import Marks, next_marks
from pipelines.increments.new_rows import CARRIED_SCHEMA, NewRows, read_new_rows
from pipelines.increments.state import CARRIED, MARKERS, OPEN, IncrementState, Manifest
from pipelines.increments.windows import SCHEMA, is_settled, read_windows, with_window, write_windows
from pipelines.judging.cut_off import CutOff
from pipelines.judging.history import EVENT_COLUMNS
from pipelines.judging.judge import FINDING_COLUMNS, findings_of, grouped, judged, with_markers
from pipelines.judging.rules import KnownRepairs
from pipelines.judging.totals import summed, summed_here
from pipelines.reconciliation import (
    PERIOD_MS,
    Books,
    ReconciliationOutcome,
    inbox_of,
    log_begins_ms,
    progress_of,
    table_findings,
    written_outcome,
)
from pipelines.sources.databases.tables import read_wrong_balances
from pipelines.sources.logs.message_logs import StoreLog
from pipelines.sources.reading import Reading

MARKERS_SCHEMA: Final = "marked_transaction_id string, markers int"
_OF_THE_MOMENT: Final = ("unconsumed", "unconsumed_retries", "unconsumed_cancellations")
"""The columns that each run recomputes for the records that are carried over from the last run."""

_KEY: Final = "COALESCE(CONCAT('o:', order_id), CONCAT('u:', unnamed))"


def reconcile_new(
    reading: Reading, books: Books, cut_off: CutOff, output: str, state: IncrementState, *, full: bool = False
) -> ReconciliationOutcome:
    """Compares the rows since the last run and the open histories, and writes the outcome like `reconcile`.

    With `full` it reads all rows and creates the state again. Raises the errors of `reconcile`, and StateUnusable.
    """
    if books.brokers:
        raise StateUnusable("messages pulled from a broker cannot be read incrementally; use --store")
    with state.taken():
        before = None if full else state.read(names_of(books))
        if before is not None and before.as_of_ms > cut_off.as_of_ms:
            raise StateUnusable(f"state {state.folder}: the folder was already written by a later run")
        try:
            rows = _Increment(reading, books, cut_off, state, before).run()
        finally:
            reading.spark.catalog.clearCache()  # the frames of `Reading.held`
    return written_outcome(rows, books, cut_off, output)


def names_of(books: Books) -> dict[str, str]:
    """Returns the names of the sources. A later run uses them to check that a state belongs to its sources."""
    return {
        "orders": books.order_database.name,
        "credits": books.credit_database.name,
        "stores": ", ".join(sorted(str(store) for store in books.stores)),
        "topic": books.route.topic,
        "consumer group": books.route.consumer_group,
        # Histories that were settled without an audit are not judged again with one. The audit files may differ.
        **({} if books.read_repairs is None else {"audit": "given"}),
    }


@dataclass(frozen=True, slots=True)
class _Increment:
    """One incremental run. `before` is the manifest of the last run, or None for a full run."""

    reading: Reading
    books: Books
    cut_off: CutOff
    state: IncrementState
    before: Manifest | None

    def run(self) -> list[dict[str, Any]]:
        """Returns the rows of the outcome, and saves the state."""
        books, marks_before = self.books, Marks() if self.before is None else self.before.marks
        repairs = books.known_repairs()
        # The offsets are read first, then the inbox, so that each acknowledged message is in the inbox or in the ledger.
        logs = {store: progress_of(StoreLog(store), books.route) for store in books.stores}
        inbox = inbox_of(self.reading, books)
        begins_ms = log_begins_ms(books.logs, books.route) if self.before is None else self.before.log_begins_ms
        balances = self._wrong_balances(marks_before)
        marks = next_marks(marks_before, books.order_database, books.credit_database, books.stores, self.cut_off)
        new = read_new_rows(
            self.reading, books.order_database, books.credit_database, logs, books.route, marks_before, marks,
            self._left(CARRIED, CARRIED_SCHEMA), inbox,
        )  # fmt: skip
        folder = self.state.new_run(self.cut_off.as_of_ms)
        rows, windows = self._judge(new, folder, begins_ms, repairs, table_findings(books, balances, list(logs.values())))
        _write(new.carried, folder / CARRIED)
        customers = sorted(balances.column("customer").to_pylist())
        self.state.replace(Manifest(folder.name, self.cut_off.as_of_ms, names_of(books), marks, begins_ms, windows, customers))
        return rows

    def _judge(
        self, new: NewRows, folder: Path, begins_ms: int | None, repairs: KnownRepairs | None, of_tables: list[dict[str, Any]]
    ) -> tuple[list[dict[str, Any]], dict[str, str]]:
        """Returns the rows of the outcome, and maps each window of settled histories to the run that last wrote it."""
        held = self.reading.held
        kept_new, passing = held(_keyed(grouped(new.kept))), held(_keyed(grouped(new.passing)))
        touched_keys = held(kept_new.select("key").union(passing.select("key")).distinct())
        windows = _keyed(read_windows(self.reading, self.state, self.before))
        touched = held(windows.join(touched_keys, "key", "left_semi"))
        was_open = self._left(OPEN, SCHEMA)
        kept = held(_keyed(grouped(_events(kept_new).unionByName(was_open).unionByName(_events(touched)))))
        markers = held(self._left(MARKERS, MARKERS_SCHEMA).unionByName(new.kept_markers))
        everything = grouped(_events(kept).unionByName(_events(passing)))
        histories = with_markers(everything, markers.unionByName(new.passing_markers).distinct())
        rows = held(_keyed(judged(self.reading.together(histories), self.cut_off, begins_ms, repairs)))
        settled_keys = held(rows.where(is_settled()).select("key").join(passing, "key", "left_anti"))
        found = findings_of(rows.join(settled_keys, "key", "left_anti"))
        found_rows = [*self.reading.rows(summed(found, PERIOD_MS)), *summed_here(of_tables, PERIOD_MS)]
        still_open = kept.join(settled_keys, "key", "left_anti").withColumns(dict.fromkeys(_OF_THE_MOMENT, F.lit(0)))
        _write(_events(still_open), folder / OPEN)
        _write(markers, folder / MARKERS)
        newly_settled = with_window(_events(kept.join(settled_keys, "key", "left_semi")), self.state.window_ms)
        changed = newly_settled.select("window").union(touched.select("window")).distinct().toArrow().column(0).to_pylist()
        others = windows.where(F.col("window").isin(changed)).join(touched_keys, "key", "left_anti").drop("key")
        settled = self.reading.together(newly_settled.unionByName(others))
        written = write_windows(self.state, folder.name, settled, self.cut_off, begins_ms, repairs, PERIOD_MS)
        before = {} if self.before is None else self.before.windows
        windows_now = {window: run for window, run in before.items() if window not in changed} | written
        return found_rows + self._sums(windows_now), windows_now

    def _sums(self, windows: Mapping[str, str]) -> list[dict[str, Any]]:
        """Returns the sums over the settled histories of all windows."""
        return [
            dict.fromkeys(FINDING_COLUMNS) | row  # an earlier version may have written fewer columns
            for window, run in sorted(windows.items())
            for row in pyarrow.parquet.read_table(self.state.sums(run, window)).to_pylist()
        ]

    def _left(self, name: str, schema: str) -> DataFrame:
        """Returns the rows that the last run saved under this name; empty in a full run."""
        if self.before is None:
            return self.reading.spark.createDataFrame([], schema)
        path = self.state.folder / self.before.run / name
        return self.reading.together(self.reading.spark.read.schema(schema).parquet(str(path)))

    def _wrong_balances(self, before: Marks) -> pyarrow.Table:
        if self.before is None:
            return read_wrong_balances(self.books.credit_database)
        return read_wrong_balances(self.books.credit_database, before.credits, self.before.customers)


def _keyed(rows: DataFrame) -> DataFrame:
    return rows.withColumn("key", F.expr(_KEY))


def _events(rows: DataFrame) -> DataFrame:
    return rows.select(*EVENT_COLUMNS)


def _write(rows: DataFrame, path: Path) -> None:
    """Writes rows that fit in memory, such as the open histories."""
    pyarrow.parquet.write_table(rows.toArrow(), path)
