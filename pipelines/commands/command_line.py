"""The command line, with the commands `reconcile` and `messages` and the commands of the other modules."""

import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pipelines.breaks.break_table import BreakTable
from pipelines.commands.arguments import (
    Audits,
    BooksOptions,
    Engine,
    Grace,
    IncrementOptions,
    Master,
    Output,
    PatienceOptions,
    ResultOptions,
    SparkLog,
    SparkOptions,
    ToleranceOptions,
    Topic,
)
from pipelines.commands.breaks import commands
from pipelines.commands.option_groups import with_groups
from pipelines.commands.repair import repair_command
from pipelines.commands.running import Judge, TimedOutcome, now_ms, reconciled_embedded, spark_judge
from pipelines.commands.verdict import exit_with, verdict_of
from pipelines.commands.watch_command import watch_command
from pipelines.judging.cut_off import GRACE_SECONDS, CutOff
from pipelines.judging.totals import Tolerance
from pipelines.message_report import report_messages, topics_table, transactions_table
from pipelines.reporting.json_report import as_json
from pipelines.reporting.page.page import write_page
from pipelines.reporting.report import (
    classes_without_findings,
    explanations,
    faults_without_order,
    findings_table,
    inbox_lines,
    say,
    screen,
    times_text,
    unchecked_repairs,
    verdict_text,
)
from pipelines.sources.logs.message_logs import StoreLog
from pipelines.sources.reading import Reading
from pipelines.spark.progress import shown_step, shown_tasks
from pipelines.spark.session import spark_session

application = typer.Typer(
    help="Checks that orders and credits agree. Exit code 0: they agree. 1: they do not. 2: the run failed.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


application.add_typer(commands, name="breaks")
application.command("repair")(repair_command)
application.command("watch")(watch_command)


@application.command("reconcile")
@with_groups(behind={"spark_log": "json"})
def reconcile_command(
    books: BooksOptions,
    spark: SparkOptions,
    patience: PatienceOptions,
    failing: ToleranceOptions,
    results: ResultOptions,
    increment: IncrementOptions,
    audit: Audits = None,
    engine: Annotated[Engine, typer.Option(help="engine of the rules: sqlite is faster for small books")] = Engine.SPARK,
    json: Annotated[bool, typer.Option("--json", help="print one JSON object instead of the table")] = False,
    again: Annotated[
        bool, typer.Option("--again", help="compare again, in the same Spark session, for each line of the standard input")
    ] = False,
) -> None:
    """Compare orders with credits, and with messages if stores are given. With --again, exit code 0 at the end of input."""
    if increment.full and increment.state is None:
        raise typer.BadParameter("--full requires --state; without --state, everything is read anyway", param_hint="--full")
    if engine is Engine.SQLITE and increment.state is not None:
        raise typer.BadParameter("--state requires Spark; omit --engine", param_hint="--engine")
    progress = Console(stderr=True)

    tolerance = failing.tolerance()

    def compare(judge: Judge) -> bool:
        cut_off = patience.cut_off(now_ms())
        timed = judge(cut_off)
        changes = None if results.breaks is None else BreakTable(results.breaks).update(timed.outcome.rows, cut_off.as_of_ms)
        if results.report is not None:
            write_page(results.report, timed.outcome, cut_off, tolerance)
        if json:
            text = as_json(
                timed.outcome, cut_off, tolerance,
                start_s=timed.start_s, compare_s=timed.compare_s, is_audited=bool(audit),
            )  # fmt: skip
            Console().out(text, highlight=False)
        else:
            _print_outcome(timed, cut_off, tolerance)
            if believed := unchecked_repairs(timed.outcome.totals, is_audited=bool(audit)):
                say(believed)
            if changes is not None:
                say(f"Breaks: {changes.opened} opened, {changes.closed} closed, {changes.still_open} open")
            if results.show_output:
                say(f"Parquet: {results.output}/findings and {results.output}/summary")
            if results.report is not None:
                say(f"Report: {results.report}")
        return tolerance.is_consistent(timed.outcome.totals)

    def work() -> bool:
        compared = books.books(audit)
        with ExitStack() as stack:
            if engine is Engine.SQLITE:
                judge: Judge = partial(reconciled_embedded, compared, results.output, progress)
            else:
                judge = stack.enter_context(spark_judge(compared, results.output, spark, progress, increment))
            if not again:
                return compare(judge)
            while True:
                verdict_of(lambda: compare(judge), progress)
                if not sys.stdin.readline():
                    return True

    exit_with(work, progress)


@application.command("messages")
def messages_command(
    store: Annotated[Path, typer.Option(help="a broker's store directory (storePathRootDir)")],
    topic: Topic = "orders",
    master: Master = None,
    grace_seconds: Grace = GRACE_SECONDS,
    output: Output = "data/messages",
    spark_log: SparkLog = None,
) -> None:
    """Count the records of a broker's commit log, and the transactions of a topic by outcome."""
    progress = Console(stderr=True)

    def judge() -> bool:
        is_small = StoreLog(store).is_small()
        cut_off = CutOff(now_ms(), grace_seconds)
        with ExitStack() as stack:
            with shown_step(progress, "Starting Spark"):
                spark = stack.enter_context(spark_session(master, spark_log, is_small=is_small))
            with shown_tasks(progress, spark, "Reading the commit log"):
                report = report_messages(Reading(spark, is_small), store, topic, cut_off, output)
        printed = screen()
        printed.print(topics_table(report, store))
        printed.print(transactions_table(report, topic, cut_off))
        say(f"Parquet: {output}/transactions")
        return report.is_consistent

    exit_with(judge, progress)


def _print_outcome(timed: TimedOutcome, cut_off: CutOff, tolerance: Tolerance) -> None:
    printed, totals = screen(), timed.outcome.totals
    printed.print(findings_table(totals, cut_off, tolerance))
    for fault in faults_without_order(timed.outcome.rows):
        printed.print(fault, style="bold red", markup=False, emoji=False, highlight=False)
    for reason in inbox_lines(timed.outcome.rows, cut_off):
        printed.print(reason, markup=False, emoji=False, highlight=False)
    if none := classes_without_findings(totals):
        printed.print(none, highlight=False)
    for explanation in explanations(totals, tolerance):
        printed.print(explanation, highlight=False)
    style = "bold green" if tolerance.is_consistent(totals) else "bold red"
    printed.print(verdict_text(totals, tolerance), style=style, highlight=False)
    printed.print(times_text(timed.start_s, timed.compare_s), highlight=False)
