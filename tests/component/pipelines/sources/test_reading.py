"""How sources become DataFrames: planned by this process, and read here or by Spark's tasks."""

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipelines.errors import UnreadableDatabase
from pipelines.sources.databases.database_source import TableSource
from pipelines.sources.databases.database_url import parse_database_url
from pipelines.sources.databases.tables import ORDERS, read_table
from pipelines.sources.reading import Reading
from tests.component.pipelines.conftest import ShopDatabases


def test_each_partition_of_a_source_is_a_task(spark: SparkSession, shop: ShopDatabases) -> None:
    ids = [str(number) for number in range(25)]
    shop.add_orders(ids)
    options = parse_database_url(shop.orders_url).to_options() | {"table": "orders", "key": "id", "rowsPerRange": "10"}
    frame = Reading(spark).frame(TableSource, options, {"order_id": "string", "total_cents": "bigint"})
    assert frame._jdf.rdd().getNumPartitions() == 3
    assert sorted((row["order_id"], row["total_cents"]) for row in frame.collect()) == sorted((one, 1250) for one in ids)


@pytest.mark.parametrize("is_small", [True, False])
def test_a_source_that_cannot_be_planned_says_so_at_once(spark: SparkSession, tmp_path: Path, is_small: bool) -> None:
    with pytest.raises(UnreadableDatabase, match="there is no such file"):
        read_table(Reading(spark, is_small), parse_database_url(f"sqlite:///{tmp_path}/absent.db"), ORDERS)


def test_a_task_s_password_is_in_no_plan(spark: SparkSession, shop: ShopDatabases, capfd: pytest.CaptureFixture[str]) -> None:
    address = parse_database_url(shop.orders_url)
    with_password = type(address)(address.driver, address.public_uri, address.name, "topsecret")
    frame = read_table(Reading(spark), with_password, ORDERS)
    for mode in ("extended", "formatted", "codegen", "cost"):
        frame.explain(mode=mode)
    assert "topsecret" not in capfd.readouterr().out
    assert "topsecret" not in frame._jdf.queryExecution().logical().toJSON()


WHAT_THE_DAEMON_HAS = """
import os, sys
from pathlib import Path
import pipelines.sources.spark_workers
print(*sorted(set(sys.argv[1:]) - sys.modules.keys()))
threads = [thread for thread in Path("/proc/self/task").iterdir() if thread.name != str(os.getpid())]
print(*[(thread / "comm").read_text() for thread in threads])
"""


def test_workers_are_forked_with_all_that_tasks_need_and_without_a_thread_that_they_would_lack() -> None:
    """jemalloc, which comes with Arrow, has one, and mends that in each process that is forked."""
    needed = ["pyspark.worker", "pyarrow", "adbc_driver_sqlite.dbapi", "rocketmq_commitlog.record_batches"]
    project = Path(__file__).resolve().parents[4]
    done = subprocess.run(
        [sys.executable, "-c", WHAT_THE_DAEMON_HAS, *needed], capture_output=True, text=True, check=True, cwd=project
    )
    missing, threads = done.stdout.split("\n", 1)
    assert missing == ""
    assert set(threads.split()) <= {"jemalloc_bg_thd"}
