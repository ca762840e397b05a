"""The command `keep-spark`: keeps a started Spark for other commands' `--connect`."""

from __future__ import annotations

import secrets
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console

from pipelines.commands.arguments import SparkLog
from pipelines.commands.verdict import exit_with
from pipelines.spark.kept import kept_spark
from pipelines.telling.report import say


def keep_spark_command(
    file: Annotated[Path, typer.Argument(help="where the address of the kept Spark goes, for --connect")] = Path(
        "data/spark.json"
    ),
    with_stdin: Annotated[
        bool, typer.Option("--with-stdin", help="end with the standard input: with the process at its other end")
    ] = False,
    spark_log: SparkLog = None,
) -> None:
    """Keep a Spark for the option --connect of other commands, until SIGTERM or Ctrl-C. Exit code 0 then."""

    def keep() -> bool:
        stopping = threading.Event()

        def stop(number: int, frame: FrameType | None) -> None:
            stopping.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        if with_stdin:
            threading.Thread(target=_set_at_end_of_stdin, args=(stopping,), daemon=True).start()
        with kept_spark(file, secrets.token_hex(), spark_log):
            say(f"Spark is kept: reconcile --connect {file}")
            stopping.wait()
        return True

    exit_with(keep, Console(stderr=True))


def _set_at_end_of_stdin(stopping: threading.Event) -> None:
    while sys.stdin.buffer.read(4096):
        pass
    stopping.set()
