from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pipelines.errors import UnreadableDatabase
from pipelines.sources.databases.adbc import check_table, read_columns
from pipelines.sources.databases.database_source import TablePartition, TableReader
from pipelines.sources.databases.database_url import parse_database_url
from pipelines.sources.databases.key_ranges import KeyRange
from tests.component.pipelines.conftest import ShopDatabases

SCHEMA = StructType([StructField("order_id", StringType()), StructField("total_cents", LongType())])


def reader(shop: ShopDatabases, rows_per_range: int = 10) -> TableReader:
    return TableReader(shop.order_database, "orders", SCHEMA, "id", rows_per_range)


def test_a_table_is_planned_in_ranges_of_its_key(shop: ShopDatabases) -> None:
    shop.add_orders([str(number) for number in range(25)])
    assert reader(shop).partitions() == [
        TablePartition(KeyRange(1, 10)),
        TablePartition(KeyRange(11, 20)),
        TablePartition(KeyRange(21, 25)),
    ]


def test_ranges_together_read_every_row_once_and_only_the_columns_asked_for(shop: ShopDatabases) -> None:
    ids = [str(number) for number in range(25)]
    shop.add_orders(ids)
    table = reader(shop)
    batches = [batch for partition in table.partitions() for batch in table.read(partition)]
    assert [order_id for batch in batches for order_id in batch.column("order_id").to_pylist()] == ids
    assert batches[0].schema.names == ["order_id", "total_cents"]


def test_an_empty_table_is_read_as_nothing(shop: ShopDatabases) -> None:
    table = reader(shop)
    (nothing,) = table.partitions()
    assert list(table.read(nothing)) == []


def test_a_missing_database_is_not_created(tmp_path: Path) -> None:
    missing = tmp_path / "missing.db"
    with pytest.raises(UnreadableDatabase, match="no such file"):
        check_table(parse_database_url(f"sqlite:///{missing}"), "orders", ["id"])
    assert not missing.exists()


@pytest.mark.parametrize(
    ("table", "column", "said"),
    [
        ("absent", "id", "no such table: absent"),
        ("orders", "absent", "no such column: absent"),
        ('"orders"', "id", "invalid name of a table"),
    ],
)
def test_what_is_missing_in_a_database_is_named(shop: ShopDatabases, table: str, column: str, said: str) -> None:
    with pytest.raises(UnreadableDatabase, match=said):
        check_table(shop.order_database, table, [column])


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("not a database, but long enough to be taken for one" * 20)
    with pytest.raises(UnreadableDatabase, match="not a database"):
        list(read_columns(parse_database_url(f"sqlite:///{tmp_path}/text.db"), "orders", {"id": "bigint"}))
