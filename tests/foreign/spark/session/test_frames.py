"""Tests how sources become DataFrames: this process plans the partitions, and this process or Spark's tasks read them."""

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pipelines.errors import UnreadableDatabase
from pipelines.sources.databases.database_source import TableSource
from pipelines.sources.databases.database_url import parse_database_url
from pipelines.sources.databases.tables import CREDITS, ORDERS, TRANSACTIONS, read_table
from pipelines.sources.reading import Reading
from tests.component.pipelines.conftest import ShopDatabases

SECRET = "topsecret"


def test_each_partition_of_a_source_is_a_task(spark: SparkSession, shop: ShopDatabases) -> None:
    ids = [str(number) for number in range(25)]
    shop.add_orders(ids)
    options = shop.order_database.to_options() | {"table": "orders", "key": "id", "rowsPerRange": "10"}
    frame = Reading(spark).frame(TableSource, options, {"order_id": "string", "total_cents": "bigint"})
    assert frame._jdf.rdd().getNumPartitions() == 3
    assert sorted((row["order_id"], row["total_cents"]) for row in frame.collect()) == sorted((one, 1250) for one in ids)


@pytest.mark.parametrize("is_small", [True, False])
def test_a_source_that_cannot_be_planned_says_so_at_once(spark: SparkSession, tmp_path: Path, is_small: bool) -> None:
    with pytest.raises(UnreadableDatabase, match=r"^database .*absent\.db: no such file$"):
        read_table(Reading(spark, is_small), parse_database_url(f"sqlite:///{tmp_path}/absent.db"), ORDERS)


def require_no_secret(frame: DataFrame, capfd: pytest.CaptureFixture[str]) -> None:
    """Fails if a plan of the frame, as Spark prints or stores it, contains SECRET."""
    for mode in ("extended", "formatted", "codegen", "cost"):
        frame.explain(mode=mode)
    assert SECRET not in capfd.readouterr().out
    assert SECRET not in frame._jdf.queryExecution().logical().toJSON()


def test_a_task_s_password_is_in_no_plan(spark: SparkSession, shop: ShopDatabases, capfd: pytest.CaptureFixture[str]) -> None:
    require_no_secret(read_table(Reading(spark), replace(shop.order_database, password=SECRET), ORDERS), capfd)


@pytest.mark.parametrize("is_small", [True, False])
def test_small_books_are_read_as_large_ones_are(spark: SparkSession, shop: ShopDatabases, is_small: bool) -> None:
    shop.orders.execute("INSERT INTO transactions VALUES ('m', NULL, 'ROLLED_BACK', 1, 'order')")
    shop.add_orders(["a"])
    rows = read_table(Reading(spark, is_small), shop.order_database, TRANSACTIONS).collect()
    assert sorted(tuple(row) for row in rows) == [
        ("U-a", "a", "order", "COMMITTED", 1),
        ("m", None, "order", "ROLLED_BACK", 1),
    ]


def test_an_empty_table_is_an_empty_frame(spark: SparkSession, shop: ShopDatabases) -> None:
    assert read_table(Reading(spark, True), shop.order_database, ORDERS).collect() == []


def test_spark_counts_what_is_there(spark: SparkSession, shop: ShopDatabases) -> None:
    shop.add_credits([str(number) for number in range(1000)])
    assert read_table(Reading(spark), shop.credit_database, CREDITS).count() == 1000


def test_the_password_is_in_no_plan(spark: SparkSession, shop: ShopDatabases, capfd: pytest.CaptureFixture[str]) -> None:
    spark.dataSource.register(TableSource)
    options = replace(shop.order_database, password=SECRET).to_options()
    frame = spark.read.format("adbc").options(**options).option("table", "orders").schema("order_id string").load()
    require_no_secret(frame, capfd)


def test_a_database_that_goes_away_is_named_in_spark_s_error(spark: SparkSession, shop: ShopDatabases) -> None:
    shop.add_orders(["a"])
    table = read_table(Reading(spark), shop.order_database, ORDERS)
    shop.orders_path.unlink()
    with pytest.raises(PySparkException, match=r"UnreadableDatabase: database .*orders\.db: no such file"):
        table.collect()
