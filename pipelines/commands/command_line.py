"""The commands `reconcile` and `messages`; `breaks`, `repair` and `watch` are added."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pipelines.breaks.break_table import BreakTable
from pipelines.commands.arguments import (
    Allow,
    Breaks,
    Brokers,
    ConsumerGroup,
    CreditDatabase,
    CreditPasswordFile,
    FailOn,
    Full,
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
    StateFolder,
    Stores,
    Topic,
)
from pipelines.commands.breaks import commands
from pipelines.commands.repair import repair_command
from pipelines.commands.running import SparkSettings, TimedOutcome, books_of, reconciled
from pipelines.commands.verdict import exit_with
from pipelines.commands.watch_command import watch_command
from pipelines.judging.cut_off import GRACE_SECONDS, OVERDUE_SECONDS, CutOff
from pipelines.judging.log_events import Route
from pipelines.message_report import report_messages, topics_table, transactions_table
from pipelines.sources.message_logs import StoreLog
from pipelines.sources.reading import Reading
from pipelines.spark.progress import shown_step, shown_tasks
from pipelines.spark.session import spark_session
from pipelines.telling.json_report import as_json
from pipelines.telling.page.page import write_page
from pipelines.telling.report import (
    classes_without_findings,
    explanations,
    findings_table,
    times_told,
    told_by_place,
    verdict_told,
)
from pipelines.telling.screen import say
from pipelines.tolerance import Tolerance

application = typer.Typer(
    help="Do orders and credits agree? Exit code 0: they do. 1: they do not. 2: the job could not tell.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


application.add_typer(commands, name="breaks")
application.command("repair")(repair_command)
application.command("watch")(watch_command)


@application.command("reconcile")
def reconcile_command(
    order_database_url: OrderDatabase = "sqlite:///data/orders.db",
    credit_database_url: CreditDatabase = "sqlite:///data/credits.db",
    order_database_password_file: OrderPasswordFile = "",
    credit_database_password_file: CreditPasswordFile = "",
    store: Stores = None,
    broker: Brokers = None,
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
    state: StateFolder = None,
    full: Full = False,
    json: Json = False,
    spark_log: SparkLog = None,
) -> None:
    """Compare orders with credits, and with messages if stores are given."""
    if full and state is None:
        raise typer.BadParameter("--full needs --state: without it everything is read anyway", param_hint="--full")
    progress = Console(stderr=True)

    def judge() -> bool:
        books = books_of(
            (order_database_url, order_database_password_file),
            (credit_database_url, credit_database_password_file),
            Route(topic, consumer_group),
            store,
            broker,
        )
        cut_off = CutOff(_now_ms(), grace_seconds, overdue_seconds)
        tolerance = Tolerance(frozenset(allow or ()), frozenset(fail_on or ()))
        timed = reconciled(books, cut_off, output, SparkSettings(master, memory, spark_log), progress, state=state, full=full)
        changes = None if breaks is None else BreakTable(breaks).update(timed.outcome.rows, cut_off.as_of_ms)
        if report is not None:
            write_page(report, timed.outcome, cut_off, tolerance)
        if json:
            told = as_json(timed.outcome, cut_off, tolerance, start_s=timed.start_s, compare_s=timed.compare_s)
            Console().out(told, highlight=False)
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
        is_small = StoreLog(store).is_small()
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


def _print_outcome(timed: TimedOutcome, cut_off: CutOff, tolerance: Tolerance) -> None:
    screen, totals = Console(), timed.outcome.totals
    screen.print(findings_table(totals, cut_off, tolerance))
    for told in told_by_place(timed.outcome.rows):
        screen.print(told, style="bold red", markup=False, highlight=False)
    if none := classes_without_findings(totals):
        screen.print(none, highlight=False)
    for explanation in explanations(totals, tolerance):
        screen.print(explanation, highlight=False)
    style = "bold green" if tolerance.is_consistent(totals) else "bold red"
    screen.print(verdict_told(totals, tolerance), style=style, highlight=False)
    screen.print(times_told(timed.start_s, timed.compare_s), highlight=False)


def _print_places(lines: list[str]) -> None:
    for line in lines:
        say(line)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
