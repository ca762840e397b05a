"""`watch`: a break is opened when the grace period ends, and closed when the credit comes."""

import re
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from demo.processes import Processes
from pipelines.breaks.break_table import BreakTable
from tests.unit.pipelines.conftest import ShopDatabases, shop

__all__ = ["shop"]

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(900),
    pytest.mark.skipif(shutil.which("java") is None, reason="no java on the PATH: apt-get install openjdk-17-jre-headless"),
]
GRACE_S = 3


def until(is_so: Callable[[], bool], timeout_s: float = 300) -> None:
    deadline = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_breaks_are_opened_and_closed_while_the_system_runs(shop: ShopDatabases, processes: Processes, tmp_path: Path) -> None:
    shop.add_orders(["fine"])
    shop.add_credits(["fine"])
    command = [
        sys.executable, "-m", "pipelines", "watch", "--every", "1", "--grace-seconds", str(GRACE_S),
        "--state", f"{tmp_path}/state", "--breaks", f"{tmp_path}/breaks.db", "--output", f"{tmp_path}/out",
    ]  # fmt: skip
    databases = {"ORDER_DATABASE_URL": shop.orders_url, "CREDIT_DATABASE_URL": shop.credits_url}
    process = processes.add(
        "watch", command, environment=databases, is_ready=lambda started: "consistent: 1 orders" in started.output()
    )
    process.start(timeout_s=300)
    breaks = BreakTable(tmp_path / "breaks.db")
    shop.add_orders(["late"], at_ms=time.time_ns() // 1_000_000)
    until(lambda: [found.subject for found in breaks.list()] == ["order late"])
    assert [found.finding for found in breaks.list()] == ["missing_credit"]
    shop.add_credits(["late"], at_ms=time.time_ns() // 1_000_000)
    until(lambda: breaks.list() == [])
    assert re.match(r"Starting Spark …\nSpark started in [\d.]+ s\.\n", process.output())
    assert re.search(r"0 doubled; breaks: 0 opened, 1 closed, 0 open; compared in [\d.]+ s$", process.output(), re.MULTILINE)
    process.stop(timeout_s=120)
    assert process.exit_code == 0
