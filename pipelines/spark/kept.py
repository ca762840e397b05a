"""A Spark that one process keeps, and that others use over Spark Connect: they wait for no start of a JVM.

The keeper writes the address and the token of its Spark into a file that only its user can read. Its JVM ends with it, however
it ends: the JVM reads a pipe from the keeper, and a pipe closes with the process that holds it.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import msgspec
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pipelines.errors import SparkUnavailable
from pipelines.spark.session import spark_session

_PLUGIN: Final = "org.apache.spark.sql.connect.SparkConnectPlugin"
_PATIENCE_S: Final = 5.0
_SERVICE: Final = "org.apache.spark.sql.connect.service.SparkConnectService"
_TOKEN: Final = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
_CLIENT_PACKAGES: Final = ("grpc", "grpc_status", "google.rpc", "pandas", "zstandard")


class KeptSpark(msgspec.Struct, frozen=True):
    """What the keeper's file says."""

    port: int
    token: str


@contextmanager
def kept_spark(file: Path, token: str, log_file: Path | None = None) -> Iterator[None]:
    """Keeps a Spark for small books during the block, and its address and `token` in `file`.

    Only who knows the token, a secret, is let in. Raises SparkUnavailable.
    """
    connect = {
        "spark.plugins": _PLUGIN,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.connect.authenticate.token": token,
    }
    file.unlink(missing_ok=True)
    with spark_session("local[*]", log_file, is_small=True, more=connect) as spark:
        jvm = spark.sparkContext._jvm
        assert jvm is not None
        # A name with `$` is Scala's object: py4j reads it as a class only by getattr.
        service = getattr(getattr(jvm, f"{_SERVICE}$"), "MODULE$")
        _write(file, KeptSpark(int(service.localPort()), token))
        try:
            yield
        finally:
            file.unlink(missing_ok=True)


@contextmanager
def connected_session(file: Path) -> Iterator[SparkSession]:
    """Yields a session of the Spark that the file names; it ends after the block, and Spark goes on.

    Raises SparkUnavailable.
    """
    missing = [name for name in _CLIENT_PACKAGES if not _is_installed(name)]
    if missing:
        raise SparkUnavailable(f"--connect needs Spark Connect's packages ({', '.join(missing)}): pip install 'pyspark[connect]'")
    try:
        kept = msgspec.json.decode(file.read_bytes(), type=KeptSpark)
    except (OSError, msgspec.MsgspecError):
        raise SparkUnavailable(f"no Spark is kept at {file}: python -m pipelines keep-spark {file}") from None
    os.environ[_TOKEN] = kept.token
    gone = SparkUnavailable(f"the Spark of {file} does not answer: its keeper is gone")
    try:
        # Spark Connect itself tries for minutes.
        socket.create_connection(("127.0.0.1", kept.port), _PATIENCE_S).close()
    except OSError:
        raise gone from None
    try:
        session = SparkSession.builder.remote(f"sc://localhost:{kept.port}").getOrCreate()
        session.conf.set("spark.sql.session.timeZone", "UTC")
    except PySparkException:
        raise gone from None
    try:
        yield session
    finally:
        session.stop()


def _write(file: Path, kept: KeptSpark) -> None:
    """Writes the file as a whole, readable by its user only."""
    fresh = file.with_name(f".{file.name}.new")
    fresh.unlink(missing_ok=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        opened.write(msgspec.json.encode(kept))
    fresh.replace(file)


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False
