"""Tests the command as users run it: a separate process, its exit code, its output and its Parquet files."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet
import pytest

from demo.processes import Processes
from pipelines.increments.state import IncrementState
from pipelines.judging.classes import NEEDS_STORE, Finding
from tests.component.pipelines.conftest import ShopDatabases, shop
from tests.unit.pipelines.log_writer import LogWriter

__all__ = ["shop"]

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1000),
    pytest.mark.skipif(shutil.which("java") is None, reason="no java on the PATH: apt-get install openjdk-17-jre-headless"),
]

PROJECT = Path(__file__).resolve().parents[3]
LONG_AGO_MS = 1_700_000_000_000


def pipelines(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs `python -m pipelines` outside the checkout."""
    inherited = {name: value for name, value in os.environ.items() if not name.endswith("_DATABASE_URL")}
    return subprocess.run(
        [sys.executable, "-m", "pipelines", *arguments],
        cwd=cwd,
        env={**inherited, "PYTHONPATH": str(PROJECT), "COLUMNS": "160", **environment},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def reconcile(shop: ShopDatabases, cwd: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return pipelines("reconcile", "--master", "local[2]", *arguments, cwd=cwd, **{**shop.environment, **environment})


def test_it_compares_again_for_each_line_by_the_same_spark(shop: ShopDatabases, processes: Processes, tmp_path: Path) -> None:
    shop.add_orders(["a", "b"], at_ms=LONG_AGO_MS)
    shop.add_credits(["a"], at_ms=LONG_AGO_MS)
    command = [sys.executable, "-m", "pipelines", "reconcile", "--json", "--again", "--output", f"{tmp_path}/out"]
    process = processes.add("judge", command, environment=shop.environment, is_asked=True)

    def told(count: int) -> list[str]:
        deadline = time.monotonic() + 300
        while len(lines := re.findall(r"^(?:\{|could not tell: ).*$", process.output(), re.MULTILINE)) < count:
            assert process.is_running, process.output()
            assert time.monotonic() < deadline, process.output()
            time.sleep(0.05)
        return lines

    process.spawn()
    told(1)
    shop.add_credits(["b"], at_ms=LONG_AGO_MS)
    process.ask()
    told(2)
    shop.credits.execute("ALTER TABLE credits RENAME TO away")
    process.ask()
    told(3)
    shop.credits.execute("ALTER TABLE away RENAME TO credits")
    process.ask()
    first, second, third, fourth = told(4)
    verdicts = [json.loads(line) for line in (first, second, fourth)]
    assert [verdict["is_consistent"] for verdict in verdicts] == [False, True, True]
    (started_s,) = {verdict["spark_started_in_s"] for verdict in verdicts}
    assert min(started_s, *(verdict["compared_in_s"] for verdict in verdicts)) > 0
    assert third.startswith("could not tell: database "), third
    process.end_input()
    assert process.wait(60) == 0


def test_equal_books_are_consistent(shop: ShopDatabases, tmp_path: Path) -> None:
    shop.add_orders(["a", "b"], at_ms=LONG_AGO_MS)
    shop.add_credits(["a", "b"], at_ms=LONG_AGO_MS)
    done = reconcile(shop, tmp_path)
    assert (done.returncode, done.stderr.splitlines()) == (0, ["Starting Spark …", "Comparing orders and credits …"])
    others = [kind for kind in Finding if kind not in NEEDS_STORE and kind not in (Finding.MATCHED, Finding.UNCLASSIFIED)]
    assert f"{len(others)} other classes: none\n" in done.stdout
    assert "consistent: 2 orders, 2 credits, 0 lost, 0 doubled\n" in done.stdout
    assert re.search(r"^Spark started in [\d.]+ s, and compared in [\d.]+ s\.$", done.stdout, re.MULTILINE)
    assert "Parquet: data/reconciliation/findings" in done.stdout
    assert pyarrow.parquet.read_table(tmp_path / "data/reconciliation/findings").num_rows == 0


def test_what_is_wrong_is_shown_and_written(shop: ShopDatabases, tmp_path: Path) -> None:
    now_ms = time.time_ns() // 1_000_000
    shop.add_orders(["fine", "forgotten", "doubled"], at_ms=LONG_AGO_MS)
    shop.add_orders(["young"], at_ms=now_ms)
    shop.add_credits(["fine", "doubled", "doubled", "invented"], at_ms=LONG_AGO_MS)
    done = reconcile(shop, tmp_path, "--output", "out", "--report", "page.html", "--breaks", "breaks.db")
    assert done.returncode == 1
    assert "Breaks: 3 opened, 0 closed, 3 open\n" in done.stdout
    assert "Report: page.html\n" in done.stdout
    assert "invented" in (tmp_path / "page.html").read_text()
    found = pyarrow.parquet.read_table(tmp_path / "out/findings").to_pylist()
    assert {(row["order_id"], row["finding"]) for row in found} == {
        ("forgotten", "missing_credit"),
        ("doubled", "double_credit"),
        ("invented", "credit_without_order"),
        ("young", "in_flight"),
    }
    summary = {row["finding"]: row for row in pyarrow.parquet.read_table(tmp_path / "out/summary").to_pylist()}
    assert summary["matched"]["count"] == 1
    assert {row["order_id"]: row["cause"] for row in found} == {
        "forgotten": "unknown",
        "doubled": "one_message",
        "invented": "unknown",
        "young": "young",
    }
    assert summary["double_credit"]["credit_cents"] == 2500
    assert summary["missing_credit"]["order_cents"] == 1250
    assert all(order_id in done.stdout for order_id in ("forgotten", "doubled", "invented", "young"))
    assert "inconsistent: 4 orders, 4 credits, 1 lost, 1 doubled, 1 credit without order\n" in done.stdout


def test_messages_alone_can_be_looked_at(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "store")
    log.deliver("a", half=log.half("a"))
    log.decide(0)
    log.half("b", at=time.time_ns() // 1_000_000)
    done = pipelines("messages", "--store", "store", cwd=tmp_path)
    assert done.returncode == 0
    assert "RMQ_SYS_TRANS_HALF_TOPIC" in done.stdout
    outcomes = pyarrow.parquet.read_table(tmp_path / "data/messages/transactions").to_pylist()
    assert {row["order_id"]: (row["delivered"], row["is_pending"]) for row in outcomes} == {"a": (1, False), "b": (0, True)}


def test_a_store_without_a_log_is_one_line(tmp_path: Path) -> None:
    done = pipelines("messages", "--store", "absent", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "could not tell: store absent: no commit log (No such file or directory)\n")


def test_a_missing_database_is_one_line(shop: ShopDatabases, tmp_path: Path) -> None:
    done = reconcile(shop, tmp_path, ORDER_DATABASE_URL="sqlite:///absent.db")
    assert (done.returncode, done.stderr) == (2, f"could not tell: database {tmp_path}/absent.db: no such file\n")


def test_a_missing_table_is_one_line(shop: ShopDatabases, tmp_path: Path) -> None:
    done = reconcile(shop, tmp_path, CREDIT_DATABASE_URL=shop.orders_url)
    assert done.returncode == 2
    assert "no such table: credits" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_unreachable_database_is_one_line_without_the_password(shop: ShopDatabases, tmp_path: Path) -> None:
    done = reconcile(shop, tmp_path, ORDER_DATABASE_URL="postgresql+psycopg://shop:topsecret@127.0.0.1:1/orders")
    assert done.returncode == 2
    assert done.stderr.startswith("could not tell: database 127.0.0.1:1/orders: ")
    assert done.stderr.count("\n") == 1
    assert "topsecret" not in done.stderr + done.stdout


def test_two_runs_with_one_state_are_told_apart_before_spark_starts(shop: ShopDatabases, tmp_path: Path) -> None:
    with IncrementState(tmp_path / "state").taken():
        done = reconcile(shop, tmp_path, "--state", "state")
    reason = "state state: another run is using it; wait until it has finished"
    assert (done.returncode, done.stderr) == (2, f"could not tell: {reason}\n")


def test_missing_java_is_one_line(shop: ShopDatabases, tmp_path: Path) -> None:
    done = reconcile(shop, tmp_path, JAVA_HOME=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("could not tell: Spark requires Java 17 or newer")


def test_a_java_that_does_not_start_spark_is_one_line(shop: ShopDatabases, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    done = reconcile(shop, tmp_path, JAVA_HOME=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.splitlines()[1:] == [f"could not tell: Spark requires Java 17 or newer, but {java} does not run"]


@pytest.mark.skipif(os.getuid() != 0 or shutil.which("setpriv") is None, reason="only root can become a user without a name")
@pytest.mark.release
def test_a_user_without_a_name_starts_spark_as_well() -> None:
    """Spark starts for a user who has no name and no home directory.

    A container with `--user 54321` runs as such a user.
    """
    # pytest keeps others out of the folders that it gives to tests.
    with TemporaryDirectory() as folder:
        _reconcile_as_nobody(Path(folder))


def _reconcile_as_nobody(tmp_path: Path) -> None:
    shop = ShopDatabases(tmp_path)
    shop.add_orders(["a"], at_ms=LONG_AGO_MS)
    shop.add_credits(["a"], at_ms=LONG_AGO_MS)
    for path in (tmp_path, *tmp_path.iterdir()):
        path.chmod(0o777)
    become = ["setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups"]
    done = subprocess.run(
        [*become, sys.executable, "-m", "pipelines", "reconcile", "--json", "--output", f"{tmp_path}/out"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": "/", "PYTHONPATH": str(PROJECT), **shop.environment},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    shop.close()
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("limit", [48, 256])
def test_too_few_open_files_are_one_line(shop: ShopDatabases, tmp_path: Path, limit: int) -> None:
    program = f"import resource, runpy; resource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, {limit}))\n"
    program += "runpy.run_module('pipelines', run_name='__main__')"
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), **shop.environment}
    command = [sys.executable, "-c", program, "reconcile"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        f"could not tell: Spark opens more files than the limit of {limit}; run ulimit -n 4096"
    )


def spread_keys(shop: ShopDatabases) -> None:
    """Leaves 99 unused keys between two rows, since Spark estimates the ranges of a table from its keys."""
    tables = ((shop.orders, ("orders", "order_items", "transactions")), (shop.credits, ("credits",)))
    for database, names in tables:
        for table in names:
            database.execute(f"UPDATE {table} SET rowid = 10000000 + 100 * rowid")
        database.commit()


@pytest.mark.release
def test_large_books_are_read_in_ranges_by_many_tasks(shop: ShopDatabases, tmp_path: Path) -> None:
    """Databases with more than 100,000 rows are read in ranges by several Spark tasks.

    Most of the rows are items. Each large table has at least two key ranges, and Spark joins the tables.
    """
    ids = [f"{number:036x}" for number in range(3_000)]
    shop.add_orders(ids, at_ms=LONG_AGO_MS)
    shop.add_credits(ids[100:] + ids[-50:] + [f"invented-{number}" for number in range(7)], at_ms=LONG_AGO_MS)
    gifts = ((order_id, number) for order_id in ids for number in range(33))
    shop.orders.executemany("INSERT INTO order_items (order_id, name, quantity, price_cents) VALUES (?, ?, 1, 0)", gifts)
    spread_keys(shop)
    # Large books get a JVM for long runs; this one is over before it has compiled much.
    done = reconcile(shop, tmp_path, "--output", "out", JAVA_TOOL_OPTIONS="-XX:TieredStopAtLevel=1")
    assert done.returncode == 1
    summary = {row["finding"]: row["count"] for row in pyarrow.parquet.read_table(tmp_path / "out/summary").to_pylist()}
    assert {finding: count for finding, count in summary.items() if count} == {
        "matched": 2_850,
        "missing_credit": 100,
        "double_credit": 50,
        "credit_without_order": 7,
    }
