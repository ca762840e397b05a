"""Tests `watch` as users run it: a process that runs until it is stopped.

`test_watch_turns` tests the times of its rounds.
"""

import re
import shutil
import sys
from pathlib import Path

import pytest

from demo.processes import Processes
from pipelines.breaks.break_table import BreakTable
from tests.component.pipelines.conftest import ShopDatabases, shop

__all__ = ["shop"]

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(900),
    pytest.mark.skipif(shutil.which("java") is None, reason="no java on the PATH: apt-get install openjdk-17-jre-headless"),
]


def test_a_watch_opens_breaks_and_ends_cleanly_when_it_is_told_to_stop(
    shop: ShopDatabases, processes: Processes, tmp_path: Path
) -> None:
    shop.add_orders(["fine", "forgotten"], at_ms=1_700_000_000_000)
    shop.add_credits(["fine"], at_ms=1_700_000_000_000)
    command = [
        sys.executable, "-m", "pipelines", "watch", "--every", "1", "--state", f"{tmp_path}/state",
        "--breaks", f"{tmp_path}/breaks.db", "--output", f"{tmp_path}/out",
    ]  # fmt: skip
    process = processes.add(
        "watch", command, environment=shop.environment, is_ready=lambda started: "compared in" in started.output()
    )
    process.start(timeout_s=300)
    process.stop(timeout_s=120)
    assert process.exit_code == 0
    assert re.match(
        r"Starting Spark …\nSpark started in [\d.]+ s\.\n\d\d:\d\d:\d\d  inconsistent: 2 orders, 1 credits, 1 lost, 0 doubled; "
        r"breaks: 1 opened, 0 closed, 1 open; compared in [\d.]+ s\n",
        process.output(),
    )
    assert [found.subject for found in BreakTable(tmp_path / "breaks.db").list()] == ["order forgotten"]
