"""The commands `reconcile` and `messages`."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from broker.message.printable import printable
from pipelines.errors import UnusableDatabaseUrl
from pipelines.judging.cut_off import GRACE_SECONDS, CutOff
from pipelines.judging.findings import FindingTotal, is_consistent
from pipelines.message_report import report_messages, topics_table, transactions_table
from pipelines.progress import shown_step, shown_tasks
from pipelines.reconciliation import Books, reconcile
from pipelines.report import classes_without_findings, explanations, findings_table, times_told, verdict_told
from pipelines.session import spark_session
from pipelines.sources.commit_log import segments
from pipelines.sources.database_address import DatabaseAddress
from pipelines.sources.database_url import parse_database_url
from pipelines.sources.tables import check_tables
from pipelines.verdict import exit_with
from service_runtime.secret_files import SecretUnusable, url_with_password

application = typer.Typer(
    help="Do orders and credits agree? Exit code 0: they do. 1: they do not. 2: the job could not tell.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

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
Master = Annotated[str | None, typer.Option(help="Spark's master: local[*] unless spark-submit says otherwise")]
Grace = Annotated[int, typer.Option(min=0, help="seconds during which a new order may still lack its credit")]
Output = Annotated[str, typer.Option(help="where the Parquet goes; on a cluster a place that all executors see")]
ShowOutput = Annotated[bool, typer.Option("--show-output/--hide-output", help="whether to say where the Parquet is")]
SparkLog = Annotated[Path | None, typer.Option(help="keep what Spark's JVM prints in this file")]
Topic = Annotated[str, typer.Option(help="the topic that orders are announced on")]


@application.command("reconcile")
def reconcile_command(
    order_database_url: OrderDatabase = "sqlite:///data/orders.db",
    credit_database_url: CreditDatabase = "sqlite:///data/credits.db",
    order_database_password_file: OrderPasswordFile = "",
    credit_database_password_file: CreditPasswordFile = "",
    store: Annotated[Path | None, typer.Option(help="a broker's store directory: compare messages, too")] = None,
    topic: Topic = "orders",
    master: Master = None,
    grace_seconds: Grace = GRACE_SECONDS,
    output: Output = "data/reconciliation",
    show_output: ShowOutput = True,
    spark_log: SparkLog = None,
) -> None:
    """Compare orders with credits, and with messages if a store is given."""
    progress = Console(stderr=True)

    def judge() -> bool:
        books = Books(
            _address("ORDER_DATABASE", order_database_url, order_database_password_file),
            _address("CREDIT_DATABASE", credit_database_url, credit_database_password_file),
            store,
            topic,
        )
        if store is not None:
            segments(store)
        check_tables(books.order_database, books.credit_database)
        cut_off = CutOff(_now_ms(), grace_seconds)
        with ExitStack() as stack:
            begun_s = time.monotonic()
            with shown_step(progress, "Starting Spark"):
                spark = stack.enter_context(spark_session(master, spark_log))
            started_s = time.monotonic()
            with shown_tasks(progress, spark, "Comparing orders and credits"):
                totals = reconcile(spark, books, cut_off, output)
            compared_s = time.monotonic()
        _print_totals(totals, cut_off)
        screen = Console()
        screen.print(times_told(started_s - begun_s, compared_s - started_s), highlight=False)
        if show_output:
            screen.print(
                printable(f"Parquet: {output}/findings and {output}/summary"), markup=False, highlight=False, soft_wrap=True
            )
        return is_consistent(totals)

    exit_with(judge, progress)


@application.command("messages")
def messages_command(
    store: Annotated[Path, typer.Option(help="a broker's store directory (storePathRootDir)")],
    topic: Topic = "orders",
    master: Master = None,
    grace_seconds: Grace = GRACE_SECONDS,
    output: Output = "data/messages",
    spark_log: SparkLog = None,
) -> None:
    """Count the records of a broker's commit log, and the transactions of one topic by how they ended."""
    progress = Console(stderr=True)

    def judge() -> bool:
        segments(store)
        cut_off = CutOff(_now_ms(), grace_seconds)
        with ExitStack() as stack:
            with shown_step(progress, "Starting Spark"):
                spark = stack.enter_context(spark_session(master, spark_log))
            with shown_tasks(progress, spark, "Reading the commit log"):
                report = report_messages(spark, store, topic, cut_off, output)
        screen = Console()
        screen.print(topics_table(report, store))
        screen.print(transactions_table(report, topic, cut_off))
        screen.print(printable(f"Parquet: {output}/transactions"), markup=False, highlight=False, soft_wrap=True)
        return report.is_consistent

    exit_with(judge, progress)


def _print_totals(totals: list[FindingTotal], cut_off: CutOff) -> None:
    screen = Console()
    screen.print(findings_table(totals, cut_off))
    if none := classes_without_findings(totals):
        screen.print(none, highlight=False)
    for explanation in explanations(totals):
        screen.print(explanation)
    screen.print(verdict_told(totals), style="bold green" if is_consistent(totals) else "bold red", highlight=False)


def _address(name: str, url: str, password_file: str) -> DatabaseAddress:
    try:
        return parse_database_url(url_with_password(url, password_file))
    except SecretUnusable as error:
        raise UnusableDatabaseUrl(f"{name}_PASSWORD_FILE: {error}") from None
    except UnusableDatabaseUrl as error:
        raise UnusableDatabaseUrl(f"{name}_URL: {error}") from None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
