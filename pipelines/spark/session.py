"""A quiet Spark session: no web page, no output on the screen, and only loopback on one machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from pipelines.errors import SparkUnavailable
from pipelines.spark import class_archive

PACKAGES: Final = ("rocketmq_broker", "pipelines", "rocketmq_commitlog")
"""The modules that executors unpickle and import: data sources, and their imports."""


_EVERYWHERE = {
    "spark.app.name": "reconciliation",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # HotSpot compiles no longer method. The rules in one of 64 KB, Spark's own limit, would take twice the time, interpreted.
    "spark.sql.codegen.hugeMethodLimit": "8000",
    # Without it a crashed Python worker reports only its crash.
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
}
_ON_ONE_MACHINE = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.python.daemon.module": "pipelines.sources.spark_workers",
}
_FOR_SMALL_BOOKS = {
    # One task does all: Spark's search for a division of the work would take longer than the work.
    "spark.default.parallelism": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # It writes facts into each rule that uses them, or leaves them, as random ids decide: plans had 716 KB, or 29.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.CollapseProject",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.artifact.isolation.enabled": "false",
    "spark.sql.dataFrameQueryContext.enabled": "false",
    # It asks the JVM five times about each column, only to name our line in an error.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
_JVM_FOR_SMALL_BOOKS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xshare:auto")
"""Compiling for a long run costs more than it brings where a table has some thousand rows."""

_JVM_FOR_LARGE_BOOKS = ("-XX:+UseParallelGC", "-XX:-UsePerfData", "-Xshare:auto")
"""Throughput is all that counts: nobody waits for a pause to end."""


@contextmanager
def spark_session(
    master: str | None,
    log_file: Path | None = None,
    *,
    is_small: bool = False,
    memory: str | None = None,
) -> Iterator[SparkSession]:
    """Yields a session on `master` (None: spark-submit's, or else local[*]), stopped after the block.

    The output of Spark's JVM goes to `log_file`, or nowhere. `is_small` makes it quick to start, and slow with many rows.
    `memory` is the heap of the JVM, such as 4g. Raises SparkUnavailable.
    """
    _require_java()
    configuration = settings(master, is_small=is_small, memory=memory)
    if _is_local(configuration):
        _let_local_workers_import_this_package()
    if is_small:
        # spark-submit starts a JVM only to build the command line of the next one.
        os.environ.setdefault("SPARK_LAUNCHER_OPTS", " ".join(_JVM_FOR_SMALL_BOOKS))
    # The archive stays until the session stops: executors fetch it at their start.
    with _opened(log_file) as log, TemporaryDirectory() as folder:
        session = _start(configuration, log)
        try:
            if not _is_local({"spark.master": session.sparkContext.master or ""}):
                _send_our_code(session, Path(folder))
            yield session
        finally:
            session.stop()


def settings(master: str | None, *, is_small: bool = False, memory: str | None = None) -> dict[str, str]:
    """Returns Spark's settings for that master; without one, spark-submit's stay in force."""
    chosen = {"spark.master": master} if master else {} if _is_submitted() else {"spark.master": "local[*]"}
    if memory:
        chosen["spark.driver.memory"] = memory
    if not _is_local(chosen):
        return {**_EVERYWHERE, **chosen}
    options = [*(_JVM_FOR_SMALL_BOOKS if is_small else _JVM_FOR_LARGE_BOOKS), *class_archive.options()]
    tuned = _FOR_SMALL_BOOKS if is_small else {"spark.sql.shuffle.partitions": str(4 * (os.cpu_count() or 1))}
    java = {"spark.driver.extraJavaOptions": " ".join(options)}
    return {**_EVERYWHERE, **chosen, **_ON_ONE_MACHINE, **tuned, **java}


def _is_submitted() -> bool:
    """Returns whether spark-submit started this process, and with it the JVM."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _is_local(configuration: dict[str, str]) -> bool:
    return configuration.get("spark.master", "").startswith("local")


def _send_our_code(session: SparkSession, folder: Path) -> None:
    """Sends this package to the executors, which each fetch the archive."""
    archive = folder / "reconciliation.zip"
    write_code_archive(archive)
    session.sparkContext.addPyFile(str(archive))


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if java is None:
        where = f"in JAVA_HOME ({home})" if home else "on the PATH, and JAVA_HOME is not set"
        raise SparkUnavailable(f"Spark needs Java 17 or newer, and there is none {where}")


def _let_local_workers_import_this_package() -> None:
    """Sets PYTHONPATH for Python workers, which inherit the environment but not sys.path."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    paths = list(filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
    sources = [source for package in PACKAGES if (source := str(folder_of(package).parent)) not in paths]
    os.environ["PYTHONPATH"] = os.pathsep.join([*sources, *paths])


@contextmanager
def _opened(log_file: Path | None) -> Iterator[int | IO[bytes]]:
    if log_file is None:
        yield subprocess.DEVNULL
        return
    with log_file.open("ab") as log:
        yield log


def _start(configuration: dict[str, str], log: int | IO[bytes]) -> SparkSession:
    conf = SparkConf(loadDefaults=False).setAll(list(configuration.items()))
    try:
        gateway = launch_gateway(conf, {"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]
    except (PySparkException, Py4JError, OSError):
        raise SparkUnavailable(
            "Spark's JVM did not start: Spark needs Java 17 or newer (--spark-log FILE keeps its words)"
        ) from None
    try:
        return SparkSession(SparkContext(conf=conf, gateway=gateway))
    except (PySparkException, Py4JError, OSError):
        master = configuration.get("spark.master", "the cluster")
        raise SparkUnavailable(f"Spark did not start on {master} (--spark-log FILE keeps its words)") from None


def write_code_archive(path: Path, packages: tuple[str, ...] = PACKAGES) -> None:
    """Writes the sources of these installed packages, without compiled or cached files.

    Spark's executors have the libraries installed, but not this program.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in packages:
            folder = folder_of(package)
            for source in sorted(folder.rglob("*.py")):
                archive.write(source, str(source.relative_to(folder.parent)))


def folder_of(package: str) -> Path:
    """Returns the folder of the package's modules. Raises ModuleNotFoundError."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"no package {package} on the path of this interpreter", name=package)
    return Path(spec.origin).parent
