"""`python -m pipelines.commands.make_class_archive` writes the archive of Spark's classes; see `class_archive`."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pipelines.errors import PipelineError
from pipelines.judging.cut_off import CutOff
from pipelines.reconciliation import Books, reconcile
from pipelines.sources.databases.database_address import DatabaseAddress
from pipelines.sources.databases.database_url import parse_database_url
from pipelines.sources.databases.tables import BALANCES, CREDITS, ORDER_ITEMS, ORDERS, TRANSACTIONS, Table
from pipelines.sources.reading import Reading
from pipelines.spark.class_archive import WRITE, path
from pipelines.spark.session import spark_session

WRITING_SECONDS: Final = 600


def main() -> None:
    """Writes the archive while it runs a minimal reconciliation. Exits with 1 and an error line on failure."""
    target = path()
    if target is None:
        return
    fresh = target.with_suffix(".new")
    os.environ[WRITE] = str(fresh)
    try:
        with TemporaryDirectory() as folder:
            _reconcile_a_little(Path(folder))
        fresh.replace(target)
    except (PipelineError, OSError, subprocess.TimeoutExpired) as error:
        fresh.unlink(missing_ok=True)
        sys.exit(f"could not write the archive of Spark's classes, Spark will start more slowly: {error}")


def _reconcile_a_little(folder: Path) -> None:
    orders = _database(folder / "orders.db", ORDERS, ORDER_ITEMS, TRANSACTIONS)
    credits = _database(folder / "credits.db", CREDITS, BALANCES)
    (folder / "store" / "commitlog").mkdir(parents=True)
    with spark_session("local[1]", is_small=True) as spark:
        jvm = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
        books = Books(orders, credits, (folder / "store",))
        reconcile(Reading(spark, is_small=True), books, CutOff(1), str(folder / "out"))
    # The JVM exits when its standard input is closed, and then writes the archive.
    jvm.stdin.close()
    jvm.wait(WRITING_SECONDS)


def _database(file: Path, *tables: Table) -> DatabaseAddress:
    """Creates a database with one row in each table, with 1 in each column."""
    with closing(sqlite3.connect(file)) as connection, connection:
        for table in tables:
            columns = [name for name in table.columns if name != "id"]
            connection.execute(f"CREATE TABLE {table.name} (id INTEGER PRIMARY KEY, {', '.join(columns)})")
            values = [1 if table.columns[name] == "bigint" else "1" for name in columns]
            connection.execute(f"INSERT INTO {table.name} VALUES (1, {', '.join('?' * len(values))})", values)
    return parse_database_url(f"sqlite:///{file}")


if __name__ == "__main__":
    main()
