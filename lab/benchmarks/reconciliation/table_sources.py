"""python -m lab.benchmarks.reconciliation.table_sources --jdbc-driver JAR: measures our ADBC source and Spark's JDBC source.

Both sources read the table of orders from a local PostgreSQL in ranges of the primary key, and Spark discards the rows. To get
the driver's JAR from Maven Central: mvn dependency:copy -Dartifact=org.postgresql:postgresql:VERSION -DoutputDirectory=data
"""

import os
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated, Final

import psutil
import psycopg
import typer
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

from lab.benchmarks.side_by_side.usage import used_cpu_s
from pipelines.sources.databases.database_address import DatabaseAddress
from pipelines.sources.databases.database_url import parse_database_url
from pipelines.sources.databases.key_ranges import ROWS_PER_RANGE
from pipelines.sources.databases.tables import ORDERS, read_table
from pipelines.sources.reading import Reading
from pipelines.spark.session import spark_session
from tests.postgresql_server import new_database

CANNOT_MEASURE: Final = 2
_FILL: Final = """
    CREATE TABLE orders (id BIGINT PRIMARY KEY, order_id VARCHAR(36), customer VARCHAR(100), total_cents BIGINT, currency CHAR(3),
        idempotency_key VARCHAR(255), created_at_ms BIGINT, state VARCHAR(16));
    INSERT INTO orders SELECT n, gen_random_uuid()::text, 'customer-' || n % 100000, 100 + n % 100000, 'EUR', NULL,
        1700000000000 + n, 'PLACED' FROM generate_series(1, {rows}) AS n;
    ANALYZE orders"""
_FETCH_ROWS: Final = 10_000
"""The number of rows that JDBC fetches at once."""


def main(
    jdbc_driver: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="JAR of PostgreSQL's JDBC driver")],
    rows: Annotated[int, typer.Option(min=1, help="number of rows in the table")] = 2_000_000,
    rounds: Annotated[int, typer.Option(min=1, help="readings by each source, in turn, after a warm-up round")] = 5,
) -> None:
    """Read one table with both sources and print the times."""
    screen = Console()
    url = new_database()
    if url is None:
        screen.print("PostgreSQL is not installed: apt-get install postgresql", style="bold red")
        sys.exit(CANNOT_MEASURE)
    plain_url = url.replace("+psycopg", "")
    with screen.status(f"Filling a table of {rows:,} rows"), closing(psycopg.connect(plain_url, autocommit=True)) as database:
        database.execute(_FILL.format(rows=rows).encode())
    os.environ["PYSPARK_SUBMIT_ARGS"] = shlex.join(["--driver-class-path", str(jdbc_driver.absolute()), "pyspark-shell"])
    with spark_session(None) as spark:
        sources = {
            "ADBC, ours": lambda: _by_adbc(spark, parse_database_url(url)),
            "JDBC, Spark's": lambda: _by_jdbc(spark, plain_url, rows),
        }
        with screen.status("Reading"):
            screen.print(_times(rows, _measured(sources, rounds)))


def _by_adbc(spark: SparkSession, address: DatabaseAddress) -> DataFrame:
    return read_table(Reading(spark), address, ORDERS)


def _by_jdbc(spark: SparkSession, url: str, rows: int) -> DataFrame:
    place = url.partition("://")[2]
    user, _, host_and_database = place.rpartition("@")
    options = {
        "url": f"jdbc:postgresql://{host_and_database}",
        "user": user,
        "driver": "org.postgresql.Driver",
        "dbtable": ORDERS.name,
        "partitionColumn": "id",
        "lowerBound": "1",
        "upperBound": str(rows),
        "numPartitions": str(-(-rows // ROWS_PER_RANGE)),
        "fetchsize": str(_FETCH_ROWS),
    }
    return spark.read.format("jdbc").options(**options).load().select(*ORDERS.columns)


def _measured(sources: Mapping[str, Callable[[], DataFrame]], rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Returns the wall and CPU seconds of each reading, by source. The first round warms up the JVM and the Python workers."""
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in sources}
    for number in range(rounds + 1):
        for name, frame in sources.items():
            began_s, began_cpu_s = time.monotonic(), _cpu_s()
            frame().write.format("noop").mode("overwrite").save()
            if number:
                measured[name].append((time.monotonic() - began_s, _cpu_s() - began_cpu_s))
    return measured


def _cpu_s() -> float:
    """Returns the CPU time in seconds of this process and its children: Spark's JVM, its Python workers and PostgreSQL."""
    process = psutil.Process()
    return sum(map(used_cpu_s, (process, *process.children(recursive=True))))


def _times(rows: int, measured: Mapping[str, list[tuple[float, float]]]) -> Table:
    table = Table(title=f"{rows:,} rows, {len(ORDERS.columns)} columns of {ORDERS.name}, PostgreSQL on this machine")
    table.add_column("source")
    for name in ("wall s (min, max)", "rows/s", "CPU s"):
        table.add_column(name, justify="right")
    for name, times in measured.items():
        walls = [wall_s for wall_s, _ in times]
        median_s = statistics.median(walls)
        cpu_s = statistics.median(cpu_s for _, cpu_s in times)
        table.add_row(name, f"{median_s:.2f} ({min(walls):.2f}, {max(walls):.2f})", f"{rows / median_s:,.0f}", f"{cpu_s:.1f}")
    return table


if __name__ == "__main__":
    typer.run(main)
