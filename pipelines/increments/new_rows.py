"""Reads the new events of each source, and separates events up to the marks from events that the next run reads again."""

from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.increments.marks import NOTHING, Marks
from pipelines.judging.events import all_events, event_rows, markers
from pipelines.judging.log_events import classified_records, events_of, unsettled
from pipelines.judging.route import Progress, Route
from pipelines.judging.table_events import CREDIT_EVENTS, ENDING_EVENTS, ITEM_EVENTS, ORDER_EVENTS, TRANSACTION_EVENTS
from pipelines.sources.databases.database_address import DatabaseAddress
from pipelines.sources.databases.key_ranges import Since
from pipelines.sources.databases.tables import CREDITS, ORDER_ITEMS, ORDERS, TRANSACTIONS, read_table
from pipelines.sources.logs.message_logs import read_records
from pipelines.sources.reading import Reading
from rocketmq_commitlog.record_columns import RecordKind


@dataclass(frozen=True, slots=True)
class NewRows:
    """The new rows of all sources."""

    kept: DataFrame
    """The events up to the marks, which later runs do not read again."""
    passing: DataFrame
    """The events above the marks, which the next run reads again."""
    kept_markers: DataFrame
    passing_markers: DataFrame
    carried: DataFrame
    """The records that later records may complete, each with its `store`. They are carried over to the next run."""


def read_new_rows(
    reading: Reading,
    order_database: DatabaseAddress,
    credit_database: DatabaseAddress,
    logs: dict[Path, Progress],
    route: Route,
    before: Marks,
    marks: Marks,
    carried: DataFrame,
    inbox: DataFrame | None,
) -> NewRows:
    """Reads the rows above the last run's marks.

    `inbox` contains the current events of the inbox, or is None. They are not kept for later runs, because each run
    reads the whole inbox. Raises UnreadableDatabase and UnreadableStore; Spark may also raise them later.
    """
    # Items are read before orders: an order that is placed in between must not appear without its items.
    items = read_table(reading, order_database, ORDER_ITEMS, Since("id", before.items))
    transactions = read_table(reading, order_database, TRANSACTIONS, Since("created_at_ms", before.transactions_ms))
    orders = read_table(reading, order_database, ORDERS, Since("id", before.orders))
    ended = read_table(reading, order_database, ORDERS, Since("ended_at_ms", before.ended_ms))
    credits = read_table(reading, credit_database, CREDITS, Since("id", before.credits))
    records = {
        store: reading.held(_new_records(reading, store, progress, route, before, marks, carried))
        for store, progress in logs.items()
    }
    of_tables = [
        [
            event_rows(items.where(_lies(is_kept, "id", marks.items)), ITEM_EVENTS),
            event_rows(transactions.where(_lies(is_kept, "created_at_ms", marks.transactions_ms)), TRANSACTION_EVENTS),
            event_rows(orders.where(_lies(is_kept, "id", marks.orders)), ORDER_EVENTS),
            event_rows(ended.where(_lies(is_kept, "ended_at_ms", marks.ended_ms)), ENDING_EVENTS),
            event_rows(credits.where(_lies(is_kept, "id", marks.credits)), CREDIT_EVENTS),
        ]
        for is_kept in (True, False)
    ]
    marked = [markers(transactions.where(_lies(is_kept, "created_at_ms", marks.transactions_ms))) for is_kept in (True, False)]
    left = [unsettled(rows).withColumn("store", F.lit(str(store))) for store, rows in records.items()]
    return NewRows(
        reading.together(all_events([*of_tables[0], *map(events_of, records.values())])),
        reading.together(all_events([*of_tables[1], *([] if inbox is None else [inbox])])),
        reading.together(marked[0]),
        reading.together(marked[1]),
        reduce(DataFrame.unionByName, left) if left else reading.spark.createDataFrame([], CARRIED_SCHEMA),
    )


CARRIED_SCHEMA = (
    "role string, topic string, queue_id int, queue_offset bigint, commit_log_offset bigint, stored_at_ms bigint, "
    "unique_key string, carried_order_id string, is_carried boolean, store string"
)
"""The schema of the records that are carried over from run to run."""


def _lies(is_kept: bool, column: str, mark: int) -> str:
    return f"{column} <= {mark}" if is_kept else f"{column} > {mark}"


def _new_records(
    reading: Reading, store: Path, progress: Progress, route: Route, before: Marks, marks: Marks, carried: DataFrame
) -> DataFrame:
    """Returns the new records of a log with their roles.

    Reads the previous run's last record again, because damage may follow it.
    """
    last, until = before.records.get(str(store), NOTHING), marks.records[str(store)]
    records = read_records(reading, store, max(0, last))
    # A gap at the end of the log has no record after it, so each run reports it.
    is_new = f"commit_log_offset > {last} AND (commit_log_offset <= {until} OR kind = '{RecordKind.GAP}')"
    new = reading.together(records.where(is_new))
    of_store = reading.together(carried.where(F.col("store") == str(store)).drop("store"))
    return classified_records(new, route, progress, of_store)
