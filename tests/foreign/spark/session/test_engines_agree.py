"""Tests that Spark and SQLite agree on books of sizes and shapes that `test_embedded.py` does not cover."""

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lab.benchmarks.reconciliation.books import write_books
from pipelines.judging.cut_off import CutOff
from pipelines.reconciliation import Books
from pipelines.sources.databases.database_url import parse_database_url
from tests.component.pipelines.broken_books import STORIES, BrokenBooks
from tests.component.pipelines.conftest import ShopDatabases
from tests.component.pipelines.test_embedded import agreed
from tests.unit.pipelines.log_writer import LogWriter


@pytest.mark.parametrize("seed", [11, 12])
def test_both_engines_agree_on_books_broken_in_every_way(
    spark: SparkSession, shop: ShopDatabases, tmp_path: Path, seed: int
) -> None:
    books = BrokenBooks(shop, LogWriter(tmp_path / "store", segment_size=1 << 17))
    names = [name for name in STORIES for _ in range(2)]
    random.Random(seed).shuffle(names)
    for number, name in enumerate(names):
        books.add(name, number)
    books.log.consume()
    outcome = agreed(spark, shop.books(books.log.store), tmp_path)
    assert {row["order_id"] for row in outcome.rows} >= books.expected.keys()
    agreed(spark, shop.books(), tmp_path)


def test_both_engines_agree_on_every_kind_of_fault_of_the_bench(spark: SparkSession, tmp_path: Path) -> None:
    as_of_ms = 1_700_000_000_000
    write_books(tmp_path / "books", 1_000, as_of_ms)
    addresses = [parse_database_url(f"sqlite:///{tmp_path}/books/{name}.db") for name in ("orders", "credits")]
    outcome = agreed(spark, Books(*addresses, (tmp_path / "books" / "store",)), tmp_path, CutOff(as_of_ms))
    assert len({row["finding"] for row in outcome.rows}) > 15
