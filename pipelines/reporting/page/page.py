"""Renders the HTML report as a single file without scripts or external resources."""

from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from pipelines.errors import UnwritableOutput
from pipelines.judging.classes import CAUSES, MEANINGS
from pipelines.judging.cut_off import CutOff
from pipelines.judging.totals import Tolerance
from pipelines.reconciliation import ReconciliationOutcome
from pipelines.reporting.page.contents import ages_of, breaks_of, causes_of, latencies_of, periods_of
from pipelines.reporting.report import age, amount, faults_without_order, inbox_lines, title, verdict_text
from pipelines.run_folders import replace_file
from rocketmq_broker.message.text.printable import visible_name


def write_page(path: Path, outcome: ReconciliationOutcome, cut_off: CutOff, tolerance: Tolerance) -> None:
    """Writes the report atomically. Only its owner can read it. Raises UnwritableOutput."""
    try:
        replace_file(path, page_of(outcome, cut_off, tolerance).encode())
    except OSError as error:
        raise UnwritableOutput(f"report {path}: {error.strerror}") from None


def page_of(outcome: ReconciliationOutcome, cut_off: CutOff, tolerance: Tolerance) -> str:
    """Returns the report as HTML. Escapes text from the databases and messages."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(utc=_utc, title=title, amount=amount, age=age, name=visible_name, latency=_latency)
    template = environment.from_string(files("pipelines.reporting.page").joinpath("page.html.jinja").read_text(encoding="utf-8"))
    breaks, count = breaks_of(outcome.rows)
    return template.render(
        as_of_ms=cut_off.as_of_ms,
        cut_off=cut_off,
        is_consistent=tolerance.is_consistent(outcome.totals),
        verdict=verdict_text(outcome.totals, tolerance),
        places=faults_without_order(outcome.rows),
        inbox=inbox_lines(outcome.rows, cut_off),
        totals=[total for total in outcome.totals if total.count],
        tolerance=tolerance,
        periods=periods_of(outcome.rows),
        latencies=latencies_of(outcome.rows),
        ages=ages_of(outcome.rows, cut_off.as_of_ms),
        causes=causes_of(outcome.rows),
        breaks=breaks,
        break_count=count,
        meanings=MEANINGS,
        cause_meanings=CAUSES,
    )


def _utc(milliseconds: int, *, seconds: bool = True) -> str:
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{milliseconds} ms"
    return moment.strftime("%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M")


def _latency(milliseconds: int) -> str:
    return f"{milliseconds:,} ms" if milliseconds < 10_000 else age(milliseconds)
