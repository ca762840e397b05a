"""Formats the findings for the screen: a table, the meaning of each class, and a verdict in one line."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipelines.judging.classes import CAUSES, MEANINGS, Cause, Finding
from pipelines.judging.cut_off import CutOff
from pipelines.judging.log_gaps import gap_lines
from pipelines.judging.totals import FindingTotal, Money, Tolerance
from pipelines.reporting.inbox_reasons import inbox_reasons
from rocketmq_broker.message.text.printable import printable, visible_name

_IN_THE_VERDICT: Final = (Finding.MISSING_CREDIT, Finding.DOUBLE_CREDIT)
MAX_WIDTH: Final = 10_000
_VALUES_SHOWN: Final = 5
_AGE_SHOWN: Final = (Finding.IN_FLIGHT, Finding.OVERDUE)
_ORDER_IDS: Final = "order ids, for example"
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def findings_table(totals: Sequence[FindingTotal], cut_off: CutOff, tolerance: Tolerance) -> Table:
    """Returns a table of the classes with findings, with counts, amounts by currency, causes and some order ids."""
    found = [total for total in totals if total.count]
    columns = {
        "finding": [title(total.finding) for total in found],
        "count": [f"{total.count:,}" for total in found],
        "ordered": ["\n".join(amount(money.order_cents, money.currency) for money in _money(total)) for total in found],
        "credited": ["\n".join(amount(money.credit_cents, money.currency) for money in _money(total)) for total in found],
    }
    if any(causes := ["\n".join(_causes(total, cut_off)) for total in found]):
        columns["cause"] = causes
    if any(order_ids := ["\n".join(map(visible_name, total.sample_order_ids)) for total in found]):
        columns[_ORDER_IDS] = order_ids
    table = Table(title=f"Reconciliation as of {utc(cut_off.as_of_ms)}, grace period {cut_off.grace_seconds} s")
    for heading in columns:
        is_number = heading in ("count", "ordered", "credited")
        table.add_column(heading, justify="right" if is_number else "left", no_wrap=heading != _ORDER_IDS)
    for total, *cells in zip(found, *columns.values(), strict=True):
        table.add_row(*map(Text, cells), style="bold red" if tolerance.fails(total) else "")
    return table


def _money(total: FindingTotal) -> Sequence[Money]:
    """Returns the money of each currency with an amount of orders or credits, or a zero if there is none."""
    return [money for money in total.money if money.order_cents or money.credit_cents] or [Money("")]


def explanations(totals: Sequence[FindingTotal], tolerance: Tolerance) -> list[str]:
    """Returns the meaning of each failing class and of its causes."""
    shown = [total for total in totals if tolerance.fails(total)]
    causes = dict.fromkeys(cause for total in shown for cause, _ in total.causes)
    return [f"{title(total.finding)}: {MEANINGS[total.finding]}" for total in shown] + [
        f"  {title(cause)}: {CAUSES[cause]}" for cause in causes
    ]


def faults_without_order(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns a line for each fault without an order, such as gaps of the log and the first unreadable values of tables."""
    values = sorted(row["transaction_id"] for row in rows if row["finding"] == Finding.UNREADABLE_VALUE)
    shown = [f"{title(Finding.UNREADABLE_VALUE)}: {visible_name(value)}" for value in values[:_VALUES_SHOWN]]
    more = [f"{len(values) - _VALUES_SHOWN:,} more unreadable values"] if len(values) > _VALUES_SHOWN else []
    return gap_lines(rows) + shown + more


def inbox_lines(rows: Sequence[Mapping[str, Any]], cut_off: CutOff) -> list[str]:
    """Returns a line for each reason why messages are still in the credit service's inbox, with their number and age."""
    lines = []
    for reason in inbox_reasons(rows):
        orders = "1 order" if reason.count == 1 else f"{reason.count:,} orders"
        since = reason.oldest_received_at_ms
        old = "" if since is None else f", the oldest for {age(cut_off.as_of_ms - since)}"
        why = printable(reason.last_error) or "not tried yet"
        lines.append(f"{reason.cause.value} in the inbox: {orders}{old}: {why}")
    more = [f"{len(lines) - _VALUES_SHOWN:,} more reasons"] if len(lines) > _VALUES_SHOWN else []
    return lines[:_VALUES_SHOWN] + more


def classes_without_findings(totals: Sequence[FindingTotal]) -> str | None:
    """Returns a line with the number of classes without findings, or None if all classes have findings."""
    count = sum(not total.count for total in totals)
    return f"{count} other classes: none" if count else None


def unchecked_repairs(totals: Sequence[FindingTotal], *, is_audited: bool) -> str | None:
    """Returns a line about repairs that were accepted without an audit file, or None if there are none."""
    count = sum(total.repaired_count for total in totals)
    if not count or is_audited:
        return None
    repaired = "1 repaired order was" if count == 1 else f"{count:,} repaired orders were"
    return f"{repaired} accepted unchecked: no audit file was given (--audit PLAN.audit.jsonl)"


def verdict_text(totals: Sequence[FindingTotal], tolerance: Tolerance) -> str:
    """Returns a one-line verdict with the numbers of orders, credits, and lost, doubled and otherwise wrong orders."""
    orders, credits = sum(total.order_count for total in totals), sum(total.credit_count for total in totals)
    count_of = {total.finding: total.count for total in totals}
    lost, doubled = (count_of.get(finding, 0) for finding in _IN_THE_VERDICT)
    others = [
        f", {total.count:,} {title(total.finding)}"
        for total in totals
        if tolerance.fails(total) and total.finding not in _IN_THE_VERDICT
    ]
    if not any(total.count for total in totals):
        return "consistent: nothing to compare: no order, no credit, no message"
    verdict = "consistent" if tolerance.is_consistent(totals) else "inconsistent"
    return f"{verdict}: {orders:,} orders, {credits:,} credits, {lost:,} lost, {doubled:,} doubled{''.join(others)}"


def times_text(start_s: float | None, compare_s: float) -> str:
    """Returns a line with the times that Spark's start and the comparison took.

    The arguments are in seconds. `start_s` is None without Spark.
    """
    if start_s is None:
        return f"SQLite compared in {compare_s:.1f} s, without Spark."
    return f"Spark started in {start_s:.1f} s, and compared in {compare_s:.1f} s."


def title(name: Finding | Cause) -> str:
    """Formats a class or a cause for people."""
    return name.value.replace("_", " ")


def amount(cents: int, currency: str = "") -> str:
    """Formats cents in units of the currency with two decimals."""
    units, rest = divmod(abs(cents), 100)
    return printable(f"{'-' if cents < 0 else ''}{units:,}.{rest:02d} {currency}".rstrip())


def age(milliseconds: int) -> str:
    """Formats a duration in its largest unit, rounded down."""
    seconds = max(milliseconds, 0) // 1000
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), (1, "s"))
    return f"{seconds // size} {unit}"


def utc(milliseconds: int) -> str:
    """Formats a time, or the number if it is not a valid date."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"{milliseconds} ms since 1970"


def _causes(total: FindingTotal, cut_off: CutOff) -> list[str]:
    is_of_all = [count for _, count in total.causes[:1]] == [total.count]
    shown = [title(cause) if is_of_all else f"{count:,} {title(cause)}" for cause, count in total.causes]
    if total.finding in _AGE_SHOWN and total.oldest_ms is not None:
        shown.append(f"oldest {age(cut_off.as_of_ms - total.oldest_ms)}")
    return shown


def screen() -> Console:
    """Returns the console for standard output. Lines are not wrapped if it is not a terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=MAX_WIDTH)


def say(line: str) -> None:
    """Prints one line without wrapping. Escapes control characters."""
    Console().print(printable(line), markup=False, emoji=False, highlight=False, soft_wrap=True)
