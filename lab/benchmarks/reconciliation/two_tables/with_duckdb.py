"""python -m lab.benchmarks.reconciliation.two_tables.with_duckdb FOLDER MEMORY: prints the differences as JSON.

The tables are read through ADBC as Arrow batches, as in our reconciliation. DuckDB's own SQLite reader is an extension, which
would have to be downloaded.
"""

import sys
from contextlib import closing
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow

from lab.benchmarks.reconciliation.two_tables.differences import CREDITS, ORDERS, Differences
from pipelines.sources.databases.adbc import read_columns
from pipelines.sources.databases.database_url import parse_database_url
from pipelines.sources.databases.tables import Table

QUERY: Final = """
    SELECT COUNT(*) FILTER (WHERE credit.order_id IS NULL),
           COALESCE(SUM(CASE WHEN "order".order_id IS NULL THEN entries ELSE entries - 1 END), 0),
           COUNT(*) FILTER (WHERE "order".order_id IS NOT NULL AND credit.order_id IS NOT NULL
                            AND (total_cents IS DISTINCT FROM amount_cents OR "order".customer IS DISTINCT FROM credit.customer))
    FROM orders AS "order"
    FULL OUTER JOIN (SELECT order_id, COUNT(*) AS entries, MIN(amount_cents) AS amount_cents, MIN(customer) AS customer
                     FROM credits GROUP BY order_id) AS credit
    ON "order".order_id = credit.order_id"""
"""A query that returns the fields of Differences in order. It is valid in SQLite, too."""


def compare(folder: Path, memory: str) -> Differences:
    """Returns the differences between the two tables of `write_books` in this folder."""
    duckdb: Any = import_module("duckdb")
    with closing(duckdb.connect(config={"memory_limit": f"{memory}b"})) as database:
        database.register("orders", _reader(folder / "orders.db", ORDERS))
        database.register("credits", _reader(folder / "credits.db", CREDITS))
        return Differences(*map(int, database.execute(QUERY).fetchone()))


def _reader(path: Path, table: Table) -> pyarrow.RecordBatchReader:
    batches = read_columns(parse_database_url(f"sqlite:///{path}"), table.name, table.columns)
    first = next(batches)
    return pyarrow.RecordBatchReader.from_batches(first.schema, chain([first], batches))


if __name__ == "__main__":
    print(msgspec.json.encode(compare(Path(sys.argv[1]), sys.argv[2])).decode())
