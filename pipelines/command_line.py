"""The commands `reconcile` and `messages`."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pipelines.commit_log import segments
from pipelines.cut_off import GRACE_SECONDS, CutOff
from pipelines.database_address import DatabaseAddress
from pipelines.database_url import parse_database_url
from pipelines.errors import UnusableDatabaseUrl
from pipelines.findings import ABOUT_ORDERS, FindingTotal, is_consistent
from pipelines.message_report import report_messages, topics_table, transactions_table
from pipelines.progress import shown_step, shown_tasks
from pipelines.reconciliation import Books, reconcile
from pipelines.report import explanations, findings_table
from pipelines.session import spark_session
from pipelines.tables import check_tables
from pipelines.verdict import exit_with

application = typer.Typer(
    help="Do orders and credits agree? Exit code 0: they do. 1: they do not. 2: could not tell.",
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
Master = Annotated[str | None, typer.Option(help="Spark's master: local[*] unless spark-submit says otherwise")]
Grace = Annotated[int, typer.Option(min=0, help="what is younger is still in flight, and not judged by what it lacks")]
Output = Annotated[str, typer.Option(help="where the Parquet goes; on a cluster a place that all executors see")]
SparkLog = Annotated[Path | None, typer.Option(help="keep what Spark's JVM prints in this file")]
Topic = Annotated[str, typer.Option(help="the topic that orders are announced on")]


@application.command("reconcile")
def reconcile_command(
    order_database_url: OrderDatabase = "sqlite:///data/orders.db",
    credit_database_url: CreditDatabase = "sqlite:///data/credits.db",
    store: Annotated[Path | None, typer.Option(help="a broker's store directory: compare messages, too")] = None,
    topic: Topic = "orders",
    master: Master = None,
    grace_seconds: Grace = GRACE_SECONDS,
    output: Output = "data/reconciliation",
    spark_log: SparkLog = None,
) -> None:
    """Compare orders with credits, and with messages if a store is given."""
    progress = Console(stderr=True)

    def judge() -> bool:
        started = time.monotonic()
        order_database = _address("ORDER_DATABASE_URL", order_database_url)
        books = Books(order_database, _address("CREDIT_DATABASE_URL", credit_database_url), store, topic)
        if store is not None:
            segments(store)
        check_tables(books.order_database, books.credit_database)
        cut_off = CutOff(_now_ms(), grace_seconds)
        with ExitStack() as stack:
            with shown_step(progress, "Starting Spark"):
                spark = stack.enter_context(spark_session(master, spark_log))
            with shown_tasks(progress, spark, "Comparing orders and credits"):
                totals = reconcile(spark, books, cut_off, output)
        _print_totals(totals, cut_off, output, time.monotonic() - started)
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
    """Count what a broker's commit log holds, and what became of the transactions of one topic."""
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
        screen.print(f"Parquet: {output}/transactions", highlight=False, soft_wrap=True)
        return report.is_consistent

    exit_with(judge, progress)


def _print_totals(totals: list[FindingTotal], cut_off: CutOff, output: str, seconds: float) -> None:
    screen = Console()
    screen.print(findings_table(totals, cut_off))
    for explanation in explanations(totals):
        screen.print(explanation)
    verdict = "[bold green]consistent[/]" if is_consistent(totals) else "[bold red]inconsistent[/]"
    compared = sum(total.count for total in totals if total.finding in ABOUT_ORDERS)
    screen.print(f"{compared:,} orders compared in {seconds:.1f} s: {verdict}", highlight=False)
    screen.print(f"Parquet: {output}/findings and {output}/summary", highlight=False, soft_wrap=True)


def _address(name: str, url: str) -> DatabaseAddress:
    try:
        return parse_database_url(url)
    except UnusableDatabaseUrl as error:
        raise UnusableDatabaseUrl(f"{name}: {error}") from None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
