"""Tests the reason given when Spark does not start: Java, SPARK_HOME, limits, arguments, or else the first error."""

from pathlib import Path

import pytest

from pipelines.spark import start_failure
from pipelines.spark.start_failure import SparkStart, first_error

ENOUGH = 4_096


def executable(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def java_home(tmp_path: Path) -> str:
    executable(tmp_path / "java" / "bin" / "java")
    return str(tmp_path / "java")


def start(java_home: str, *, open_files: int = ENOUGH, **environment: str) -> SparkStart:
    return SparkStart({"JAVA_HOME": java_home, **environment}, "4.3.0", open_files)


@pytest.fixture(autouse=True)
def java_17(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_failure, "java_version", lambda java: 17)


def test_a_java_home_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    assert start(f"{tmp_path}/none").obstacle() == (
        f"Spark requires Java 17 or newer, but there is none in JAVA_HOME ({tmp_path}/none)"
    )
    without = SparkStart({"PATH": str(tmp_path)}, "4.3.0", ENOUGH)
    assert without.obstacle() == "Spark requires Java 17 or newer, but there is none on the PATH, and JAVA_HOME is not set"


def test_a_spark_home_of_another_version_is_named(tmp_path: Path, java_home: str) -> None:
    spark_home = tmp_path / "spark"
    empty = start(java_home, SPARK_HOME=str(spark_home)).obstacle()
    assert empty == f"SPARK_HOME ({spark_home}) does not contain Spark; unset it to use the Spark of the package pyspark"
    executable(spark_home / "bin" / "spark-submit")
    assert start(java_home, SPARK_HOME=str(spark_home)).obstacle() is None, "a Spark of unknown version may be the right one"
    executable(spark_home / "jars" / "spark-core_2.12-3.5.1.jar")
    old = start(java_home, SPARK_HOME=str(spark_home)).obstacle()
    assert old == f"SPARK_HOME ({spark_home}) contains Spark 3.5, but the package pyspark is 4.3.0; unset SPARK_HOME"


def test_a_spark_home_of_pysparks_own_version_serves(tmp_path: Path, java_home: str) -> None:
    executable(tmp_path / "bin" / "spark-submit")
    executable(tmp_path / "jars" / "spark-core_2.13-4.3.1.jar")
    assert start(java_home, SPARK_HOME=str(tmp_path)).obstacle() is None


@pytest.mark.parametrize(("version", "told"), [(11, "is Java 11; set JAVA_HOME to a newer one"), (None, "does not run")])
def test_an_old_java_is_named_with_its_version(
    java_home: str, monkeypatch: pytest.MonkeyPatch, version: int | None, told: str
) -> None:
    monkeypatch.setattr(start_failure, "java_version", lambda java: version)
    reason = start(java_home).why_it_failed("Error: LinkageError occurred while loading main class")
    assert reason == f"Spark requires Java 17 or newer, but {java_home}/bin/java {told}"


@pytest.mark.parametrize(
    ("open_files", "printed"),
    [
        (48, 'Exception in thread "main" java.lang.AssertionError: Config file not found on classpath: sql.textproto'),
        (512, "Caused by: java.io.FileNotFoundException: /usr/lib/jvm/lib/tzdb.dat (Too many open files)"),
    ],
)
def test_too_few_open_files_are_named_whatever_spark_complains_of(java_home: str, open_files: int, printed: str) -> None:
    reason = start(java_home, open_files=open_files).why_it_failed(printed)
    assert reason == f"Spark opens more files than the limit of {open_files}; run ulimit -n 4096"


def test_otherwise_it_is_the_first_error_of_the_log(java_home: str) -> None:
    printed = """WARNING: Using incubator modules: jdk.incubator.vector
26/11/27 19:05:13 WARN Utils: Set SPARK_LOCAL_IP if you need to bind to another address
Exception in thread "main" org.apache.spark.SparkException: When running with master 'yarn' HADOOP_CONF_DIR must be set.
\tat org.apache.spark.deploy.SparkSubmitArguments.error(SparkSubmitArguments.scala:675)
Caused by: java.io.IOException: another
"""
    told = "Spark did not start: SparkException: When running with master 'yarn' HADOOP_CONF_DIR must be set"
    assert start(java_home).why_it_failed(printed) == told
    by_arguments = start(java_home, PYSPARK_SUBMIT_ARGS="--master yarn pyspark-shell").why_it_failed(printed)
    assert by_arguments == f"{told}; PYSPARK_SUBMIT_ARGS is set"


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        ("Error: Missing application resource.\n\nUsage: spark-submit [options]", "Missing application resource"),
        (
            "WARNING: Using modules\nInvalid maximum heap size: -Xmxmuch\nError: Could not create the Java Virtual Machine.",
            "Invalid maximum heap size: -Xmxmuch",
        ),
        ("Error occurred during initialization of VM\nToo small maximum heap", "Too small maximum heap"),
        (
            "An error occurred while calling None.JavaSparkContext.\n: java.io.IOException: No space left on device\n\tat x.Y",
            "IOException: No space left on device",
        ),
        (
            "26/11/27 19:11:13 ERROR JavaUtils: Failed to create directory /proc/blockmgr-1",
            "Failed to create directory /proc/blockmgr-1",
        ),
        ("26/11/27 19:11:13 WARN Utils: Set SPARK_LOCAL_IP", None),
        ("", None),
    ],
)
def test_the_first_error_is_found_in_each_of_its_forms(printed: str, told: str | None) -> None:
    assert first_error(printed) == told
