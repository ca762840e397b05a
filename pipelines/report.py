"""The findings as a table on the screen."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.table import Table
from rich.text import Text

from broker.message.printable import printable
from pipelines.judging.cut_off import CutOff
from pipelines.judging.findings import ABOUT_ORDERS, MEANINGS, Finding, FindingTotal


def findings_table(totals: Sequence[FindingTotal], cut_off: CutOff) -> Table:
    """Each class of finding that has any, with its count, amounts and a few order ids."""
    table = Table(title=f"Reconciliation as of {_utc(cut_off.as_of_ms)}, grace period {cut_off.grace_seconds} s")
    table.add_column("finding", no_wrap=True)
    for name in ("count", "ordered", "credited"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("order ids, for example", overflow="fold")
    for total in totals:
        if not total.count:
            continue
        style = "bold red" if total.is_inconsistent else ""
        table.add_row(
            _title(total.finding),
            f"{total.count:,}",
            amount(total.order_cents),
            amount(total.credit_cents),
            Text("\n".join(map(printable, total.sample_order_ids))),
            style=style,
        )
    return table


def explanations(totals: Sequence[FindingTotal]) -> list[str]:
    """What each class of finding means that makes the books wrong."""
    return [f"{_title(total.finding)}: {MEANINGS[total.finding]}" for total in totals if total.is_inconsistent]


def classes_without_findings(totals: Sequence[FindingTotal]) -> str | None:
    """The classes that were looked for and not found, in one line; None if each has findings."""
    names = [_title(total.finding) for total in totals if not total.count]
    return f"{len(names)} other classes: none ({', '.join(names)})" if names else None


def verdict_told(totals: Sequence[FindingTotal]) -> str:
    """The verdict in one line: how many orders and credits there are, and how many were lost, doubled or otherwise wrong."""
    about_orders = [total for total in totals if total.finding in ABOUT_ORDERS]
    orders = sum(total.order_count for total in about_orders if total.finding is not Finding.ROLLED_BACK_ORDER)
    credits = sum(total.credit_count for total in about_orders)
    count_of = {total.finding: total.count for total in totals}
    lost, doubled = count_of.get(Finding.MISSING_CREDIT, 0), count_of.get(Finding.DOUBLE_CREDIT, 0)
    others = [
        f", {total.count:,} {_title(total.finding)}"
        for total in totals
        if total.is_inconsistent and total.finding not in (Finding.MISSING_CREDIT, Finding.DOUBLE_CREDIT)
    ]
    verdict = "inconsistent" if any(total.is_inconsistent for total in totals) else "consistent"
    return f"{verdict}: {orders:,} orders, {credits:,} credits, {lost:,} lost, {doubled:,} doubled{''.join(others)}"


def times_told(start_s: float, compare_s: float) -> str:
    """How long Spark took to start, which does not depend on the orders, and how long to compare."""
    return f"Spark started in {start_s:.1f} s, and compared in {compare_s:.1f} s."


def _title(finding: Finding) -> str:
    return finding.value.replace("_", " ")


def amount(cents: int) -> str:
    """Cents as units of currency with two decimals; currencies are added up as if they were one."""
    units, rest = divmod(abs(cents), 100)
    return f"{'-' if cents < 0 else ''}{units:,}.{rest:02d}"


def _utc(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
