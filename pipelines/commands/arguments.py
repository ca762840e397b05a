"""What the commands take from the command line and the environment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipelines.judging.classes import Finding

OrderDatabase = Annotated[
    str, typer.Option(envvar="ORDER_DATABASE_URL", show_envvar=True, help="database URL, as the services take it")
]
CreditDatabase = Annotated[
    str, typer.Option(envvar="CREDIT_DATABASE_URL", show_envvar=True, help="database URL, as the services take it")
]
OrderPasswordFile = Annotated[
    str, typer.Option(envvar="ORDER_DATABASE_PASSWORD_FILE", show_envvar=True, help="file with the order database's password")
]
CreditPasswordFile = Annotated[
    str, typer.Option(envvar="CREDIT_DATABASE_PASSWORD_FILE", show_envvar=True, help="file with the credit database's password")
]
Stores = Annotated[
    list[Path] | None,
    typer.Option("--store", help="a broker's store directory: compare messages, too; once for each broker"),
]
Brokers = Annotated[
    list[str] | None,
    typer.Option("--broker", help="HOST:PORT of a broker whose messages are pulled: where no path leads to its store"),
]
Topic = Annotated[str, typer.Option(help="the topic that orders are announced on")]
ConsumerGroup = Annotated[str, typer.Option(help="the group that writes the credits")]
Master = Annotated[str | None, typer.Option(help="Spark's master: local[*] unless spark-submit says otherwise")]
Memory = Annotated[str | None, typer.Option(help="heap of Spark's JVM on this machine, such as 4g")]
Grace = Annotated[int, typer.Option(min=0, help="seconds during which a new order may still lack its credit")]
Overdue = Annotated[int, typer.Option(min=0, help="seconds after which what is on its way, by the commit log, fails")]
Output = Annotated[str, typer.Option(help="where the Parquet goes")]
ShowOutput = Annotated[bool, typer.Option("--show-output/--hide-output", help="whether to say where the Parquet is")]
SparkLog = Annotated[Path | None, typer.Option(help="keep what Spark's JVM prints in this file")]
Allow = Annotated[list[Finding] | None, typer.Option(help="a class of finding that shall not fail; may be repeated")]
FailOn = Annotated[list[Finding] | None, typer.Option(help="a healthy class that shall fail all the same; may be repeated")]
Json = Annotated[bool, typer.Option("--json", help="print one JSON object instead of the table")]
Report = Annotated[Path | None, typer.Option(help="write a page to look at into this HTML file")]
StateFolder = Annotated[
    Path | None, typer.Option("--state", help="read only what is new since the last run with this folder, and what was open")
]
Full = Annotated[bool, typer.Option("--full", help="with --state: read everything, and begin the folder anew")]
Breaks = Annotated[Path | None, typer.Option(help="keep account of breaks in this file, from run to run")]
