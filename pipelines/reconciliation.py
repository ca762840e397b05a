"""The reconciliation from tables to totals: what `python -m pipelines reconcile` runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from pipelines.judging.cut_off import CutOff
from pipelines.judging.findings import ABOUT_MESSAGES, ABOUT_ORDERS, FindingTotal
from pipelines.matching import match_orders, with_outcome
from pipelines.message_matching import match_messages
from pipelines.sources.commit_log import first_record
from pipelines.sources.database_address import DatabaseAddress
from pipelines.sources.log_records import read_records
from pipelines.sources.tables import CREDITS, ORDERS, TRANSACTIONS, read_table
from pipelines.summary import write_findings, write_summary
from pipelines.transactions import transactions_of


@dataclass(frozen=True, slots=True)
class Books:
    """What is compared: two databases, and the commit log between them if a store is given."""

    order_database: DatabaseAddress
    credit_database: DatabaseAddress
    store: Path | None = None
    topic: str = "orders"


def reconcile(spark: SparkSession, books: Books, cut_off: CutOff, output: str) -> list[FindingTotal]:
    """Compares, writes Parquet to `output`/findings and `output`/summary, and returns the totals in the order of `Finding`.

    Raises UnreadableStore; and Spark's errors if a database or the output fails meanwhile.
    """
    kinds = ABOUT_ORDERS if books.store is None else ABOUT_ORDERS + ABOUT_MESSAGES
    totals = write_findings(find(spark, books, cut_off), kinds, output)
    write_summary(spark, totals, cut_off, output)
    return totals


def find(spark: SparkSession, books: Books, cut_off: CutOff) -> DataFrame:
    """All findings, matched ones included."""
    orders = read_table(spark, books.order_database, ORDERS)
    outcomes = read_table(spark, books.order_database, TRANSACTIONS)
    credits = read_table(spark, books.credit_database, CREDITS)
    found = match_orders(orders, outcomes, credits, cut_off)
    if books.store is None:
        return found
    messages = transactions_of(read_records(spark, books.store), books.topic).persist()
    return found.unionByName(match_messages(with_outcome(orders, outcomes), messages, cut_off, log_begins_ms(books.store)))


def log_begins_ms(store: Path) -> int:
    """From when on the commit log is complete: from the beginning of time if no segment was deleted.

    Raises UnreadableStore.
    """
    oldest = first_record(store)
    return oldest.store_timestamp if oldest is not None and oldest.commit_log_offset > 0 else 0
