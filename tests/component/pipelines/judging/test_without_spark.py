"""Tests that judging without Spark has the same findings as the reconciliation."""

import sqlite3
from pathlib import Path

from pipelines.judging.route import Route
from pipelines.judging.totals import SUMMED
from pipelines.judging.without_spark.auditing import RecordsOfBroker, audited
from pipelines.judging.without_spark.in_sqlite import Row
from pipelines.judging.without_spark.table_events import TableRows
from pipelines.sources.logs.consumer_offsets import read_consumer_offsets
from rocketmq_commitlog.commit_log import scan, split_log
from tests.component.pipelines.broken_books import CUT_OFF, BrokenBooks
from tests.component.pipelines.conftest import ShopDatabases
from tests.unit.pipelines.log_writer import LogWriter


def rows(connection: sqlite3.Connection, table: str) -> tuple[Row, ...]:
    cursor = connection.execute(f"SELECT * FROM {table}")
    names = [column[0] for column in cursor.description]
    return tuple(dict(zip(names, values, strict=True)) for values in cursor)


def tables_of(shop: ShopDatabases) -> TableRows:
    of_orders = [rows(shop.orders, name) for name in ("orders", "order_items", "transactions")]
    return TableRows(*of_orders, *[rows(shop.credits, name) for name in ("credits", "balances", "rocketmq_inbox")])


def log_of(store: Path) -> RecordsOfBroker:
    route = Route()
    progress = {topic: read_consumer_offsets(store, route.consumer_group, topic) for topic in route.consumed_topics}
    return RecordsOfBroker([found for log_range in split_log(store) for found in scan(log_range)], progress)


def test_books_broken_in_every_way_are_reported_as_they_were_broken(shop: ShopDatabases, tmp_path: Path) -> None:
    books = BrokenBooks(shop, LogWriter(tmp_path / "store", segment_size=1 << 17))
    books.add_each_twice()
    found = audited(tables_of(shop), [log_of(books.log.store)], CUT_OFF)
    told = {row["order_id"]: (row["finding"], row["cause"]) for row in found if row["order_id"] is not None}
    unhealthy = {order_id: verdict for order_id, verdict in told.items() if verdict[0] not in SUMMED}
    assert unhealthy == books.expected
    assert len(told) - len(unhealthy) == books.healthy
