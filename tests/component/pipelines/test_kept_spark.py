"""A kept Spark judges as SQLite does, and ends with its keeper, however that ends; who cannot use it is told why."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from benchmarks.reconciliation.books import write_books
from pipelines.errors import SparkUnavailable
from pipelines.spark import kept
from pipelines.spark.kept import connected_session
from tests.waiting import wait_until

PROJECT = Path(__file__).resolve().parents[3]
PATIENCE_S = 60.0
AN_HOUR_MS = 3_600_000

Ending = Callable[[subprocess.Popen[bytes]], None]


def sent(number: signal.Signals) -> Ending:
    return lambda keeper: keeper.send_signal(number)


def stdin_closed(keeper: subprocess.Popen[bytes]) -> None:
    assert keeper.stdin is not None
    keeper.stdin.close()


@pytest.mark.skipif(shutil.which("java") is None, reason="no java on the PATH")
@pytest.mark.parametrize(
    "end", [sent(signal.SIGKILL), sent(signal.SIGTERM), sent(signal.SIGINT), stdin_closed], ids=["kill", "term", "int", "stdin"]
)
def test_the_jvm_ends_with_its_keeper(tmp_path: Path, end: Ending) -> None:
    with keeping(tmp_path / "spark.json") as keeper:
        assert (tmp_path / "spark.json").stat().st_mode & 0o077 == 0, "others must not read the token"
        children = psutil.Process(keeper.pid).children(recursive=True)
        assert any(child.name() == "java" for child in children)
        end(keeper)
        keeper.wait(PATIENCE_S)
        wait_until(lambda: not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children))


@pytest.mark.skipif(shutil.which("java") is None, reason="no java on the PATH")
def test_a_kept_spark_finds_every_kind_of_fault_run_after_run(tmp_path: Path) -> None:
    write_books(tmp_path / "books", 1_000, time.time_ns() // 1_000_000 - AN_HOUR_MS)
    by_sqlite = findings_of(tmp_path, "--engine", "sqlite")
    assert len([told for told in by_sqlite if told["count"]]) > 15
    with keeping(tmp_path / "spark.json"):
        for _ in range(2):
            assert findings_of(tmp_path, "--connect", str(tmp_path / "spark.json")) == by_sqlite


def test_without_spark_connects_packages_the_error_says_how_to_get_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "_CLIENT_PACKAGES", ("grpc", "package_that_is_missing"))
    with (
        pytest.raises(SparkUnavailable, match=r"\(package_that_is_missing\): pip install 'pyspark\[connect\]'"),
        connected_session(tmp_path / "none"),
    ):
        pass


@contextmanager
def keeping(file: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Keeps a Spark during the block."""
    command = [sys.executable, "-m", "pipelines", "keep-spark", str(file), "--with-stdin"]
    with subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as keeper:
        try:
            wait_until(file.exists)
            yield keeper
        finally:
            keeper.kill()


def findings_of(folder: Path, *options: str) -> list[dict[str, Any]]:
    """The findings that `reconcile --json` tells of the books."""
    databases = [f"--{name}-database-url=sqlite:///{folder}/books/{name}s.db" for name in ("order", "credit")]
    store, output = ["--store", str(folder / "books" / "store")], ["--output", str(folder / "out"), "--json"]
    command = [sys.executable, "-m", "pipelines", "reconcile", *databases, *store, *output, *options]
    connect = {**os.environ, "PYTHONPATH": str(PROJECT / ".venv" / "connect")}
    done = subprocess.run(command, cwd=PROJECT, env=connect, stdout=subprocess.PIPE, timeout=PATIENCE_S, check=False)
    findings: list[dict[str, Any]] = msgspec.json.decode(done.stdout)["findings"]
    return findings
