"""Tests that a Spark cluster has the same findings as one machine, with PostgreSQL and a broker on the network."""

import asyncio
import json
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pyspark
import pytest
from pyspark.sql import SparkSession

from demo.ports import free_ports
from demo.processes import Processes, prints
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

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(shutil.which("java") is None, reason="no java on the PATH: apt-get install openjdk-17-jre-headless"),
    pytest.mark.skipif(binaries() is None, reason="no PostgreSQL in /usr/lib/postgresql: apt-get install postgresql"),
]
SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
LOOPBACK = {"SPARK_LOCAL_IP": "127.0.0.1"}
NO_FIXED_PORT = {"SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false"}
SHORT_LIVED = {"JAVA_TOOL_OPTIONS": " ".join(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *class_archive.options()])}
"""All JVMs here, the executors' too, are over before a thorough compilation would pay."""
FEW_ROWS = {
    "PYSPARK_SUBMIT_ARGS": "--conf spark.sql.shuffle.partitions=2 --conf spark.sql.codegen.wholeStage=false "
    "--conf spark.sql.codegen.factoryMode=NO_CODEGEN pyspark-shell"
}
"""What a cluster's spark-defaults.conf would say if its books were always as short as these."""


@pytest.fixture
def master(processes: Processes, tmp_path: Path) -> str:
    """Starts a Spark master with two workers, which cannot import our code. Returns the master's URL."""
    port, *pages = free_ports(4)
    url = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    arguments = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(pages[0])]
    environment = {
        **LOOPBACK, **NO_FIXED_PORT, **SHORT_LIVED, "PYTHONPATH": "", "SPARK_WORKER_DIR": str(tmp_path / "work"),
    }  # fmt: skip
    master = processes.add(
        "master", [str(SPARK_CLASS), f"{deploy}.master.Master", *arguments], environment=environment,
        is_ready=prints("I have been elected leader"),
    )  # fmt: skip
    master.start(timeout_s=300)
    workers = []
    for number in (1, 2):
        arguments = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", str(pages[number]), url]
        worker = processes.add(
            f"worker-{number}", [str(SPARK_CLASS), f"{deploy}.worker.Worker", *arguments], environment=environment,
            is_ready=prints("Successfully registered with master"),
        )  # fmt: skip
        worker.spawn()
        workers.append(worker)
    for worker in workers:
        worker.wait_until_ready(timeout_s=300)
    return url


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
    spark: SparkSession, master: str, databases: dict[str, str], broker: BrokerProcess, tmp_path: Path
) -> None:
    asyncio.run(announce(broker))
    environment = {**databases, **LOOPBACK, **SHORT_LIVED, **FEW_ROWS, "PYSPARK_PYTHON": sys.executable}
    # Without a grace period no finding depends on when it is looked for.
    options = ("--broker", broker.address, "--grace-seconds", "0", "--json", "--master", master, "--spark-log", "cluster.log")
    done = pipelines("reconcile", *options, cwd=tmp_path, **environment)
    assert done.returncode == 1, done.stderr
    on_the_cluster = findings_in(done.stdout)
    assert on_the_cluster == found_here(spark, databases, broker, tmp_path / "here")
    counts = {found["finding"]: found["count"] for found in on_the_cluster}
    assert (counts["order_without_message"], counts["missing_credit"], counts["message_without_order"]) == (996, 1, 1)
    executors = list((tmp_path / "work").glob("app-*/*/stderr"))
    assert len(executors) == 2, "both workers took part"
