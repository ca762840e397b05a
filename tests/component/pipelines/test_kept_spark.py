"""A kept Spark ends with the process that keeps it, however that ends; who cannot use it is told why."""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from pipelines.errors import SparkUnavailable
from pipelines.spark.kept import connected_session

PROJECT = Path(__file__).resolve().parents[3]
PATIENCE_S = 60.0

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
    file = tmp_path / "spark.json"
    command = [sys.executable, "-m", "pipelines", "keep-spark", str(file), "--with-stdin"]
    with subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as keeper:
        try:
            waited(file.exists)
            assert file.stat().st_mode & 0o077 == 0, "others must not read the token"
            children = psutil.Process(keeper.pid).children(recursive=True)
            assert any(child.name() == "java" for child in children)
            end(keeper)
            keeper.wait(PATIENCE_S)
            waited(lambda: not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children))
        finally:
            keeper.kill()


@pytest.mark.skipif(find_spec("grpc") is not None, reason="Spark Connect's packages are installed")
def test_without_spark_connects_packages_the_error_says_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(SparkUnavailable, match=r"grpc.*pip install 'pyspark\[connect\]'"), connected_session(tmp_path / "none"):
        pass


def waited(is_so: Callable[[], bool]) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until_s
        time.sleep(0.05)
