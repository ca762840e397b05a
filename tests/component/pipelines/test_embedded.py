"""Tests that SQLite and Spark have the same findings, sums, times and amounts for small databases.

This is the only test in `make test` that starts a JVM. Both engines judge the data of all tests in one run.
`tests/foreign/spark/session` contains the other tests with Spark.
"""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipelines.embedded import reconcile_embedded
from pipelines.errors import EngineUnfit
from pipelines.judging.cut_off import CutOff
from pipelines.reconciliation import Books, ReconciliationOutcome, reconcile
from pipelines.sources.reading import Reading
from tests.component.pipelines import strange_books
from tests.component.pipelines.broken_books import CUT_OFF, STORIES, BrokenBooks
from tests.component.pipelines.conftest import ShopDatabases

COLUMNS = {
    "orders": ("customer", "total_cents", "currency", "state", "created_at_ms", "paid_at_ms"),
    "order_items": ("name", "quantity", "price_cents"),
    "transactions": ("state", "kind", "created_at_ms", "order_id"),
    "credits": ("kind", "points", "amount_cents", "customer", "transaction_id", "created_at_ms"),
}
INBOX_COLUMNS = ("consumer", "topic", "body", "properties", "status", "received_at_ms", "last_error")
VALUES = ("NULL", "0.6", "'12abc'", "x'c0ff'", "-5", "''")
BODIES: tuple[bytes, ...] = (
    b"", b"null", b"[]", b"{}", b"7", b'"text"', b"{", b"{} {}", b"\xff\xfe", b"\xef\xbb\xbf{}",
    b'{"total_cents": NaN}', b"{'a': 1}",
)  # fmt: skip
SAID: tuple[dict[str, Any], ...] = (
    {"total_cents": "1250"}, {"total_cents": 1250.0}, {"total_cents": True}, {"total_cents": None}, {"total_cents": 2**63},
    {"total_cents": {"cents": 1}}, {"customer": 5}, {"customer": None}, {"customer": ["ada"]}, {"customer": {"name": "ada"}},
    {"customer": True}, {"currency": 978}, {"created_at_ms": "now"}, {"version": "2"}, {"version": 2**31}, {"version": None},
    {"items": None}, {"items": {}}, {"items": []}, {"items": ["book"]}, {"items": [None]}, {"items": [{}]}, {"items": "books"},
    {"items": [{"name": "book", "quantity": "2"}]}, {"items": [{"name": "book", "quantity": 2.5}]},
    {"items": [{"name": 5, "quantity": 2}]}, {"items": [{"name": "book", "quantity": 2, "price": 1}, 3]},
    {"order_id": 7}, {"order_id": None}, {"order_id": ""}, {"order_id": {"a": [1, 2.5, "x"]}},
)  # fmt: skip


def agreed(spark: SparkSession, books: Books, folder: Path, cut_off: CutOff = CUT_OFF) -> ReconciliationOutcome:
    """Returns the outcome of both engines. Fails if the outcomes differ."""
    by_spark = reconcile(Reading(spark, True), books, cut_off, str(folder / "by_spark"))
    by_sqlite = reconcile_embedded(books, cut_off, str(folder / "by_sqlite"))
    assert told(by_sqlite) == told(by_spark)
    assert by_sqlite.totals == by_spark.totals
    return by_sqlite


def told(outcome: ReconciliationOutcome) -> Counter[tuple[tuple[str, Any], ...]]:
    return Counter(tuple(sorted(row.items())) for row in outcome.rows)


def break_in_every_way(books: BrokenBooks) -> None:
    """Creates an order for each story, for each value of a wrong type in each column, and for each unusual body."""
    names = list(STORIES)
    random.Random(11).shuffle(names)
    for number, name in enumerate(names):
        books.add(name, number)
    for table, columns in COLUMNS.items():
        for column in columns:
            for number, value in enumerate(VALUES):
                books.health(order_id := f"{table}-{column}-{number}")
                change = f"UPDATE {table} SET {column} = {value} WHERE order_id = ?"
                if (column, value) not in {("state", "NULL"), ("kind", "NULL")}:
                    (books.in_credits if table == "credits" else books.in_orders)(change, order_id)
    for column in INBOX_COLUMNS:
        for number, value in enumerate((*VALUES, "'{}'", '\'{"KEYS":"inbox-of-another"}\'')):
            books.place(order_id := f"inbox-{column}-{number}")
            books.announce(order_id)
            books.store(order_id, "FAILED")
            if value != "NULL" or column == "last_error":
                books.in_credits(
                    f"UPDATE rocketmq_inbox SET {column} = {value} WHERE message_key = 'orders ' || ? || ' 1'", order_id
                )
    for number, body in enumerate(BODIES):
        strange_books.body(lambda _, said=body: said)(books, f"body-{number}")  # type: ignore[misc]
    for number, said in enumerate(SAID):
        changed = strange_books.body(lambda body, said=said: json.dumps(json.loads(body) | said).encode())  # type: ignore[misc]
        changed(books, f"said-{number}")


@pytest.mark.timeout(900)
def test_both_engines_agree_on_every_book_that_is_strange_or_broken(spark: SparkSession, tmp_path: Path) -> None:
    outcome = agreed(spark, strange_books.written(tmp_path, break_in_every_way), tmp_path)
    found = {row["order_id"] for row in outcome.rows}
    assert {order_id for name, order_id in strange_books.IDS.items() if name in strange_books.OF_THE_ISSUE} <= found | {None}


def test_an_amount_that_only_spark_adds_up_is_refused(shop: ShopDatabases, tmp_path: Path) -> None:
    for name in ("a", "a"):
        shop.add_credits([name], amount_cents=2**63 - 1)
    with pytest.raises(EngineUnfit, match="--engine spark"):
        reconcile_embedded(shop.books(), CUT_OFF, str(tmp_path / "out"))


def test_messages_of_a_broker_need_spark(shop: ShopDatabases, tmp_path: Path) -> None:
    with pytest.raises(EngineUnfit, match="use --engine spark"):
        reconcile_embedded(shop.books(brokers=["127.0.0.1:1"]), CUT_OFF, str(tmp_path / "out"))


def test_an_old_sqlite_needs_spark_and_is_no_wide_amount(
    shop: ShopDatabases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqlite3.sqlite_version_info", (3, 26, 0))
    with pytest.raises(EngineUnfit, match=r"^this Python has SQLite .* requires 3\.35\.0 or newer; use --engine spark"):
        reconcile_embedded(shop.books(), CUT_OFF, str(tmp_path / "out"))
