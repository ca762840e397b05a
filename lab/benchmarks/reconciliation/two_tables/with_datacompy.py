"""python -m lab.benchmarks.reconciliation.two_tables.with_datacompy FOLDER MEMORY: prints the differences as JSON.

datacompy uses our Spark session and our source. The tables are cached, because datacompy reads them several times.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import DataFrame

from lab.benchmarks.reconciliation.two_tables.differences import CREDITS, ORDERS, Differences
from pipelines.sources.databases.database_url import parse_database_url
from pipelines.sources.databases.tables import Table, read_table
from pipelines.sources.reading import Reading
from pipelines.spark.session import spark_session


def compare(folder: Path, memory: str) -> Differences:
    """Returns the differences between the two tables of `write_books` in this folder."""
    datacompy: Any = import_module("datacompy.spark")
    with spark_session(None, memory=memory) as spark:
        reading = Reading(spark)
        orders = _cached(reading, folder / "orders.db", ORDERS, "total_cents")
        credits = _cached(reading, folder / "credits.db", CREDITS, "amount_cents")
        compared = datacompy.SparkSQLCompare(spark, orders, credits, join_columns="order_id")
        return Differences(
            orders_left=compared.df1_unq_rows.count(),
            credits_left=compared.df2_unq_rows.count(),
            unequal=compared.intersect_rows.count() - compared.count_matching_rows(),
        )


def _cached(reading: Reading, path: Path, table: Table, amount: str) -> DataFrame:
    """Returns the table, cached by Spark. The compared columns have the same names in both tables."""
    frame = read_table(reading, parse_database_url(f"sqlite:///{path}"), table)
    return frame.withColumnRenamed(amount, "cents").persist()


if __name__ == "__main__":
    print(msgspec.json.encode(compare(Path(sys.argv[1]), sys.argv[2])).decode())
