"""Tests that the commit log's data source works when only its wheel and the broker's wheel are installed."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from deploy.scripts.build_wheels import build_wheel
from tests.unit.pipelines.log_writer import LogWriter

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(shutil.which("java") is None, reason="no java on the PATH: apt-get install openjdk-17-jre-headless"),
]

PROJECT = Path(__file__).resolve().parents[3]
PROGRAM = """
from pyspark.sql import SparkSession
from rocketmq_commitlog import CommitLogSource
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.dataSource.register(CommitLogSource)
log = spark.read.format("rocketmq_commitlog").option("store", STORE).schema("kind string, keys string").load()
print(sorted((row.kind, row.keys) for row in log.collect()))
"""


def test_the_wheel_reads_a_log_by_itself(tmp_path: Path) -> None:
    wheel = build_wheel(Path(sys.executable), PROJECT / "packages" / "commitlog", tmp_path, tmp_path)
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"rocketmq_commitlog"}
    assert "rocketmq_commitlog/py.typed" in names
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    shutil.copytree(PROJECT / "broker" / "rocketmq_broker", site / "rocketmq_broker", ignore=shutil.ignore_patterns("*.so"))
    log = LogWriter(tmp_path / "store")
    log.deliver("a", half=log.half("a"))
    program = PROGRAM.replace("STORE", repr(str(log.store)))
    environment = {"PYTHONPATH": str(site), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env={"PATH": "/usr/bin:/bin", **environment}, capture_output=True,
        text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.stdout == "[('committed', 'a'), ('half', 'a')]\n", done.stderr[-2000:]
