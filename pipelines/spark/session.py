"""Creates a Spark session without web UI and console output. On one machine it uses only the loopback interface."""

import os
import pwd
import resource
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import IO, Final

from py4j.java_gateway import JavaGateway  # type: ignore[import-untyped]
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext, __version__
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from pipelines.errors import SparkUnavailable
from pipelines.spark import class_archive
from pipelines.spark.start_failure import MIN_OPEN_FILES, SparkStart, first_error

PACKAGES: Final = ("rocketmq_broker", "pipelines", "rocketmq_commitlog")
"""The packages that executors import, which contain the data sources and their dependencies."""


_EVERYWHERE = {
    "spark.app.name": "reconciliation",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # HotSpot does not compile longer methods. With Spark's limit of 64 KB the rules would be interpreted, at half the speed.
    "spark.sql.codegen.hugeMethodLimit": "8000",
    # Makes a crashed Python worker report its stack trace.
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
}
_ON_ONE_MACHINE = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.python.daemon.module": "pipelines.sources.spark_workers",
}
_FOR_SMALL_BOOKS = {
    # One task does all the work, because planning its division would take longer.
    "spark.default.parallelism": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # This rule may inline the facts into each rule that uses them, depending on random ids: plans had 716 KB or 29 KB.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.CollapseProject",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.artifact.isolation.enabled": "false",
    "spark.sql.dataFrameQueryContext.enabled": "false",
    # It makes five JVM calls for each column, only to show the line of Python code in errors.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
_JVM_FOR_SMALL_BOOKS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xshare:auto")
"""JVM options for small sources. Optimizing compilation costs more than it saves for a few thousand rows."""

_JVM_FOR_LARGE_BOOKS = ("-XX:+UseParallelGC", "-XX:-UsePerfData", "-Xshare:auto")
"""JVM options for large sources. They are optimized for throughput, because pauses do not matter."""


MAX_BEGINNING: Final = 256 * 1024
"""The maximum number of bytes at the beginning of the JVM's output that are searched for an error."""
_LAST_WORDS_S: Final = 5.0


@contextmanager
def spark_session(
    master: str | None,
    log_file: Path | None = None,
    *,
    is_small: bool = False,
    memory: str | None = None,
) -> Iterator[SparkSession]:
    """Yields a session, and stops it after the block. Raises SparkUnavailable.

    If `master` is None, uses the master of spark-submit, or local[*] without spark-submit. The output of Spark's JVM is
    written to `log_file`, or discarded. With `is_small` the session starts fast, but is slow with many rows. `memory`
    is the heap size of the JVM, such as 4g.
    """
    start = _prepared()
    configuration = settings(master, is_small=is_small, memory=memory)
    if _is_local(configuration):
        _let_local_workers_import_this_package()
    if is_small:
        # spark-submit first starts a JVM only to build the command line of the actual one.
        os.environ.setdefault("SPARK_LAUNCHER_OPTS", " ".join(_JVM_FOR_SMALL_BOOKS))
    # The code archive must exist until the session stops, because executors fetch it at their start.
    with _kept_output(log_file) as output, TemporaryDirectory() as folder:
        session = _start(configuration, start, output)
        try:
            if not _is_local({"spark.master": session.sparkContext.master or ""}):
                _send_our_code(session, Path(folder))
            yield session
        finally:
            session.stop()


def settings(master: str | None, *, is_small: bool = False, memory: str | None = None) -> dict[str, str]:
    """Returns Spark's settings for the master.

    If `master` is None, the settings of spark-submit apply, or local[*] without spark-submit.
    """
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
    """Returns True if spark-submit started this process and the JVM."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _is_local(configuration: dict[str, str]) -> bool:
    return configuration.get("spark.master", "").startswith("local")


def _send_our_code(session: SparkSession, folder: Path) -> None:
    """Adds an archive of the Python sources of PACKAGES to the session.

    Spark's executors fetch it, because they have the libraries installed but not this program.
    """
    path = folder / "reconciliation.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            of_package = folder_of(package)
            for source in sorted(of_package.rglob("*.py")):
                archive.write(source, str(source.relative_to(of_package.parent)))
    session.sparkContext.addPyFile(str(path))


def _prepared() -> SparkStart:
    """Prepares this process for the start of a JVM. Raises SparkUnavailable if Spark cannot start."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < MIN_OPEN_FILES:
        soft = MIN_OPEN_FILES if hard == resource.RLIM_INFINITY else min(MIN_OPEN_FILES, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    start = SparkStart(os.environ, __version__, sys.maxsize if soft == resource.RLIM_INFINITY else soft)
    if (obstacle := start.obstacle()) is not None:
        raise SparkUnavailable(obstacle)
    if not _has_a_name() and "-Duser.home=" not in os.environ.get("SPARK_SUBMIT_OPTS", ""):
        # A JVM uses "?" as the home of a user without a passwd entry.
        options = os.environ.get("SPARK_SUBMIT_OPTS", "")
        os.environ["SPARK_SUBMIT_OPTS"] = f"{options} -Duser.home={gettempdir()}".strip()
    return start


def _has_a_name() -> bool:
    """Returns True if the user has a passwd entry. In a container the user may have none."""
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        return False
    return True


def _name_the_user(gateway: JavaGateway) -> None:
    """Sets the user name for Hadoop, whose own lookup fails without a passwd entry."""
    users = gateway.jvm.org.apache.hadoop.security.UserGroupInformation
    users.setLoginUser(users.createRemoteUser(os.environ.get("HADOOP_USER_NAME") or f"user-{os.getuid()}"))


def _let_local_workers_import_this_package() -> None:
    """Sets PYTHONPATH for local Python workers, which inherit the environment but not sys.path."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    paths = list(filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
    sources = [source for package in PACKAGES if (source := str(folder_of(package).parent)) not in paths]
    os.environ["PYTHONPATH"] = os.pathsep.join([*sources, *paths])


class _Output:
    """Reads the output of Spark's JVM. Keeps its beginning, and copies all of it to `log` if given."""

    def __init__(self, log: IO[bytes] | None) -> None:
        self._log = log
        self._beginning = b""
        self._readable, self.writable = os.pipe()
        self._thread = threading.Thread(target=self._read, name="output of Spark", daemon=True)
        self._thread.start()

    def has_its_writer(self) -> None:
        """Closes this process's write end of the pipe, so that the output ends when the JVM exits."""
        os.close(self.writable)

    def beginning(self) -> str:
        """Returns the beginning of the output. Waits a few seconds for its end."""
        self._thread.join(_LAST_WORDS_S)
        return self._beginning.decode(errors="replace")

    def _read(self) -> None:
        with open(self._readable, "rb", buffering=0) as printed:
            while content := printed.read(8192):
                self._beginning += content[: max(0, MAX_BEGINNING - len(self._beginning))]
                if self._log is not None:
                    with suppress(OSError, ValueError):
                        self._log.write(content)
                        self._log.flush()


@contextmanager
def _kept_output(log_file: Path | None) -> Iterator[_Output]:
    if log_file is None:
        yield _Output(None)
        return
    try:
        log = log_file.open("ab")
    except OSError as error:
        raise SparkUnavailable(f"cannot write --spark-log {log_file}: {error.strerror}") from None
    with log:
        yield _Output(log)


def _start(configuration: dict[str, str], start: SparkStart, output: _Output) -> SparkSession:
    conf = SparkConf(loadDefaults=False).setAll(list(configuration.items()))
    try:
        try:
            gateway = launch_gateway(conf, {"stdout": output.writable, "stderr": output.writable})  # type: ignore[no-untyped-call]
        finally:
            output.has_its_writer()
    except OSError as error:
        raise SparkUnavailable(f"cannot start Spark's JVM: {error}") from None
    except (PySparkException, Py4JError):
        raise SparkUnavailable(start.why_it_failed(output.beginning())) from None
    try:
        if not _has_a_name():
            _name_the_user(gateway)
        return SparkSession(SparkContext(conf=conf, gateway=gateway))
    except (PySparkException, Py4JError, OSError) as error:
        master = configuration.get("spark.master", "the cluster")
        reason = first_error(str(error)) or first_error(output.beginning()) or "it printed no error"
        raise SparkUnavailable(f"Spark did not start on {master}: {reason}") from None


def folder_of(package: str) -> Path:
    """Returns the folder of a package. Raises ModuleNotFoundError."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"package {package} not found by this interpreter", name=package)
    return Path(spec.origin).parent
