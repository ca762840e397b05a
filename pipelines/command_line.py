"""The commands `reconcile` and `messages`."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from broker.message.printable import printable
from pipelines.arguments import (
    Allow,
    Breaks,
    ConsumerGroup,
    CreditDatabase,
    CreditPasswordFile,
    FailOn,
    Grace,
    Json,
    Master,
    Memory,
    OrderDatabase,
    OrderPasswordFile,
    Output,
    Overdue,
    Report,
    ShowOutput,
    SparkLog,
    Stores,
    Topic,
)
from pipelines.book_size import are_small, log_is_small
from pipelines.breaks.break_table import BreakTable
from pipelines.breaks.commands import commands
from pipelines.errors import UnusableDatabaseUrl
from pipelines.json_report import as_json
from pipelines.judging.cut_off import GRACE_SECONDS, OVERDUE_SECONDS, CutOff
from pipelines.judging.log_events import Route
from pipelines.message_report import report_messages, topics_table, transactions_table
from pipelines.page.page import write_page
from pipelines.progress import shown_step, shown_tasks
from pipelines.reconciliation import Books, Outcome, reconcile
from pipelines.report import classes_without_findings, explanations, findings_table, times_told, verdict_told
from pipelines.session import spark_session
from pipelines.sources.commit_log import segments
from pipelines.sources.database_address import DatabaseAddress
from pipelines.sources.database_url import parse_database_url
from pipelines.sources.reading import Reading
from pipelines.sources.tables import check_tables
from pipelines.tolerance import Tolerance
from pipelines.verdict import exit_with
from service_runtime.secret_files import SecretUnusable, url_with_password

application = typer.Typer(
    help="Do orders and credits agree? Exit code 0: they do. 1: they do not. 2: the job could not tell.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


application.add_typer(commands, name="breaks")


@dataclass(frozen=True, slots=True)
class _Timed:
    """What a reconciliation found, and how long Spark took to start and to compare."""

    outcome: Outcome
    start_s: float
    compare_s: float


@application.command("reconcile")
def reconcile_command(
    order_database_url: OrderDatabase = "sqlite:///data/orders.db",
    credit_database_url: CreditDatabase = "sqlite:///data/credits.db",
    order_database_password_file: OrderPasswordFile = "",
    credit_database_password_file: CreditPasswordFile = "",
    store: Stores = None,
    topic: Topic = "orders",
    consumer_group: ConsumerGroup = "credit_service",
    master: Master = None,
    memory: Memory = None,
    grace_seconds: Grace = GRACE_SECONDS,
    overdue_seconds: Overdue = OVERDUE_SECONDS,
    allow: Allow = None,
    fail_on: FailOn = None,
    output: Output = "data/reconciliation",
    show_output: ShowOutput = True,
    report: Report = None,
    breaks: Breaks = None,
    json: Json = False,
    spark_log: SparkLog = None,
) -> None:
    """Compare orders with credits, and with messages if stores are given."""
    progress = Console(stderr=True)

    def judge() -> bool:
        books = Books(
            _address("ORDER_DATABASE", order_database_url, order_database_password_file),
            _address("CREDIT_DATABASE", credit_database_url, credit_database_password_file),
            tuple(store or ()),
            Route(topic, consumer_group),
        )
        cut_off = CutOff(_now_ms(), grace_seconds, overdue_seconds)
        tolerance = Tolerance(frozenset(allow or ()), frozenset(fail_on or ()))
        timed = _reconciled(books, cut_off, output, master, memory, spark_log, progress)
        changes = None if breaks is None else BreakTable(breaks).update(timed.outcome.rows, cut_off.as_of_ms)
        if report is not None:
            write_page(report, timed.outcome, cut_off, tolerance)
        if json:
            Console().out(as_json(timed.outcome.totals, cut_off, tolerance), highlight=False)
        else:
            _print_outcome(timed, cut_off, tolerance)
            if changes is not None:
                _print_places([f"Breaks: {changes.opened} opened, {changes.closed} closed, {changes.still_open} open"])
            places = [f"Parquet: {output}/findings and {output}/summary"] if show_output else []
            _print_places(places + ([f"Report: {report}"] if report is not None else []))
        return tolerance.is_consistent(timed.outcome.totals)

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
        is_small = log_is_small([store])
        cut_off = CutOff(_now_ms(), grace_seconds)
        with ExitStack() as stack:
            with shown_step(progress, "Starting Spark"):
                spark = stack.enter_context(spark_session(master, spark_log, is_small=is_small))
            with shown_tasks(progress, spark, "Reading the commit log"):
                report = report_messages(Reading(spark, is_small), store, topic, cut_off, output)
        screen = Console()
        screen.print(topics_table(report, store))
        screen.print(transactions_table(report, topic, cut_off))
        _print_places([f"Parquet: {output}/transactions"])
        return report.is_consistent

    exit_with(judge, progress)


def _reconciled(
    books: Books,
    cut_off: CutOff,
    output: str,
    master: str | None,
    memory: str | None,
    spark_log: Path | None,
    progress: Console,
) -> _Timed:
    for store in books.stores:
        segments(store)
    check_tables(books.order_database, books.credit_database)
    is_small = are_small(books.order_database, books.credit_database, books.stores)
    with ExitStack() as stack:
        begun_s = time.monotonic()
        with shown_step(progress, "Starting Spark"):
            spark = stack.enter_context(spark_session(master, spark_log, is_small=is_small, memory=memory))
        started_s = time.monotonic()
        with shown_tasks(progress, spark, "Comparing orders and credits"):
            outcome = reconcile(Reading(spark, is_small), books, cut_off, output)
        return _Timed(outcome, started_s - begun_s, time.monotonic() - started_s)


def _print_outcome(timed: _Timed, cut_off: CutOff, tolerance: Tolerance) -> None:
    screen, totals = Console(), timed.outcome.totals
    screen.print(findings_table(totals, cut_off, tolerance))
    if none := classes_without_findings(totals):
        screen.print(none, highlight=False)
    for explanation in explanations(totals, tolerance):
        screen.print(explanation, highlight=False)
    style = "bold green" if tolerance.is_consistent(totals) else "bold red"
    screen.print(verdict_told(totals, tolerance), style=style, highlight=False)
    screen.print(times_told(timed.start_s, timed.compare_s), highlight=False)


def _print_places(lines: list[str]) -> None:
    screen = Console()
    for line in lines:
        screen.print(printable(line), markup=False, highlight=False, soft_wrap=True)


def _address(name: str, url: str, password_file: str) -> DatabaseAddress:
    try:
        return parse_database_url(url_with_password(url, password_file))
    except SecretUnusable as error:
        raise UnusableDatabaseUrl(f"{name}_PASSWORD_FILE: {error}") from None
    except UnusableDatabaseUrl as error:
        raise UnusableDatabaseUrl(f"{name}_URL: {error}") from None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
