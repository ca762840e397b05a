"""Tests that a Spark cluster has the same findings as one machine: with PostgreSQL and a broker, and when it loses a worker."""

import asyncio
import json
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from demo.processes import Processes
from lab.benchmarks.reconciliation.books import write_books
from lab.benchmarks.reconciliation.runs import reconcile as reconcile_books
from lab.benchmarks.reconciliation.spark_cluster import SparkCluster, start_spark_cluster
from pipelines.judging.cut_off import CutOff
from pipelines.judging.totals import Tolerance
from pipelines.reconciliation import Books, reconcile
from pipelines.reporting.json_report import as_json
from pipelines.sources.databases.database_url import parse_database_url
from pipelines.sources.reading import Reading
from pipelines.spark import class_archive
from rocketmq_broker.client import Producer
from rocketmq_broker.message import Message
from tests.conftest import BrokerProcess
from tests.e2e.clients import PATIENT, running
from tests.foreign.postgresql.postgres import binaries, running_postgres
from tests.foreign.postgresql.test_reconcile_postgresql import CREDITS, ORDERS
from tests.foreign.spark.test_reconcile_command import pipelines
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(shutil.which("java") is None, reason="no java on the PATH: apt-get install openjdk-17-jre-headless"),
    pytest.mark.skipif(binaries() is None, reason="no PostgreSQL in /usr/lib/postgresql: apt-get install postgresql"),
]
SHORT_LIVED = {"JAVA_TOOL_OPTIONS": " ".join(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *class_archive.options()])}
"""All JVMs here, the executors' too, are over before a thorough compilation would pay."""
ORDERS_WITH_LOG = 34_000
"""With their items and credits these are more rows than one task reads alone."""
FEW_ROWS = (
    "--conf spark.sql.shuffle.partitions=2 --conf spark.sql.codegen.wholeStage=false "
    "--conf spark.sql.codegen.factoryMode=NO_CODEGEN"
)
"""What a cluster's spark-defaults.conf would say if its books were always as short as these."""


def start_cluster(processes: Processes, folder: Path, submit_options: str) -> SparkCluster:
    """Starts a Spark master with two workers. Their heap is near the smallest that Spark accepts."""
    return start_spark_cluster(
        processes, folder, workers=2, memory="512m", environment=SHORT_LIVED, submit_options=submit_options
    )


@pytest.fixture
def databases() -> Iterator[dict[str, str]]:
    """Creates databases of 1,000 orders and 999 credits. Their keys span a range of 100,000, so executors read them in ranges."""
    programs = binaries()
    assert programs is not None
    with running_postgres(programs) as server:
        plain = server.url.replace("+psycopg", "")
        with closing(psycopg.connect(f"{plain}/postgres", autocommit=True)) as connection:
            for name in ("orders", "credits"):
                connection.execute(f"CREATE DATABASE {name}".encode())
        for name, script in (("orders", ORDERS), ("credits", CREDITS)):
            with psycopg.connect(f"{plain}/{name}") as connection:
                connection.execute(script.encode())
                for table in {"orders": ("orders", "order_items"), "credits": ("credits",)}[name]:
                    connection.execute(f"UPDATE {table} SET id = 10000000 + 100 * id".encode())
        yield {"ORDER_DATABASE_URL": f"{server.url}/orders", "CREDIT_DATABASE_URL": f"{server.url}/credits"}


async def announce(broker: BrokerProcess) -> None:
    """Sends the messages of some orders, and the message of an order that does not exist."""
    async with running(Producer("p", namesrv_addr=broker.namesrv_addr, **PATIENT)) as producer:
        for number in (1, 2, 3, 5000):
            body = b'{"order_id": "order %d", "customer": "ada", "total_cents": %d, "currency": "EUR"}' % (number, number)
            await producer.send(Message.of("orders", body, tags="created"))


def found_here(spark: SparkSession, databases: dict[str, str], broker: BrokerProcess, output: Path) -> list[dict[str, Any]]:
    """Returns the findings of a reconciliation in this process's Spark session."""
    addresses = [parse_database_url(databases[name]) for name in ("ORDER_DATABASE_URL", "CREDIT_DATABASE_URL")]
    books = Books(addresses[0], addresses[1], brokers=(broker.address,))
    cut_off = CutOff(time.time_ns() // 1_000_000, grace_seconds=0)
    outcome = reconcile(Reading(spark, is_small=True), books, cut_off, str(output))
    return findings_in(as_json(outcome, cut_off, Tolerance(), start_s=0, compare_s=0))


def findings_in(told: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(told)["findings"]
    return found


def test_a_cluster_finds_what_one_machine_finds(
    spark: SparkSession, processes: Processes, databases: dict[str, str], broker: BrokerProcess, tmp_path: Path
) -> None:
    cluster = start_cluster(processes, tmp_path / "work", FEW_ROWS)
    asyncio.run(announce(broker))
    environment = {**databases, **SHORT_LIVED, **cluster.environment}
    # Without a grace period no finding depends on when it is looked for.
    options = (
        "--broker",
        broker.address,
        "--grace-seconds",
        "0",
        "--json",
        "--master",
        cluster.url,
        "--spark-log",
        "cluster.log",
    )
    done = pipelines("reconcile", *options, cwd=tmp_path, **environment)
    assert done.returncode == 1, done.stderr
    on_the_cluster = findings_in(done.stdout)
    assert on_the_cluster == found_here(spark, databases, broker, tmp_path / "here")
    counts = {found["finding"]: found["count"] for found in on_the_cluster}
    assert (counts["order_without_message"], counts["missing_credit"], counts["message_without_order"]) == (996, 1, 1)
    assert all("registered with driver" in cluster.executor_output(number) for number in (0, 1)), "both workers took part"


def findings_of(books: Path) -> list[dict[str, Any]]:
    """Returns the rows that the last reconciliation of these books wrote."""
    rows = pyarrow.parquet.read_table(books / "out" / "findings").to_pylist()
    return sorted(rows, key=repr)


@pytest.mark.release
def test_a_worker_that_is_killed_in_the_middle_changes_no_finding(
    processes: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")
    cluster = start_cluster(processes, tmp_path / "work", "--conf spark.sql.shuffle.partitions=4")
    books = tmp_path / "books"
    write_books(books, ORDERS_WITH_LOG, time.time_ns() // 1_000_000)
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(reconcile_books, books, ORDERS_WITH_LOG, "1g", cluster)
        wait_until(lambda: "Finished task" in cluster.executor_output(0))
        assert not running.done()
        cluster.lose_worker(0)
        on_the_cluster = running.result(600)
    assert "Lost executor" in (books / "spark.log").read_text()
    assert on_the_cluster.is_right, on_the_cluster
    found = findings_of(books)
    assert reconcile_books(books, ORDERS_WITH_LOG, "1g").is_right
    assert found == findings_of(books)
