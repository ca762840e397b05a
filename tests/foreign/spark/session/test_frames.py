"""Tests how sources become DataFrames: this process plans the partitions, and this process or Spark's tasks read them."""

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pipelines.errors import UnreadableDatabase
from pipelines.sources.databases.database_source import TableSource
from pipelines.sources.databases.database_url import parse_database_url
from pipelines.sources.databases.tables import CREDITS, ORDERS, TRANSACTIONS, read_table
from pipelines.sources.reading import Reading
from tests.component.pipelines.conftest import ShopDatabases


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


def test_a_task_s_password_is_in_no_plan(spark: SparkSession, shop: ShopDatabases, capfd: pytest.CaptureFixture[str]) -> None:
    address = shop.order_database
    with_password = type(address)(address.driver, address.public_uri, address.name, "topsecret")
    frame = read_table(Reading(spark), with_password, ORDERS)
    for mode in ("extended", "formatted", "codegen", "cost"):
        frame.explain(mode=mode)
    assert "topsecret" not in capfd.readouterr().out
    assert "topsecret" not in frame._jdf.queryExecution().logical().toJSON()


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
    address = shop.order_database
    with_password = type(address)(address.driver, address.public_uri, address.name, "topsecret")
    spark.dataSource.register(TableSource)
    frame = (
        spark.read.format("adbc").options(**with_password.to_options()).option("table", "orders").schema("order_id string").load()
    )
    for mode in ("extended", "formatted", "codegen", "cost"):
        frame.explain(mode=mode)
    assert "topsecret" not in capfd.readouterr().out
    assert "topsecret" not in frame._jdf.queryExecution().logical().toJSON()


def test_a_database_that_goes_away_is_named_in_spark_s_error(spark: SparkSession, shop: ShopDatabases) -> None:
    shop.add_orders(["a"])
    table = read_table(Reading(spark), shop.order_database, ORDERS)
    shop.orders_path.unlink()
    with pytest.raises(PySparkException, match=r"UnreadableDatabase: database .*orders\.db: no such file"):
        table.collect()
