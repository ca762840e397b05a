"""The findings as a table on the screen."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.table import Table

from pipelines.cut_off import CutOff
from pipelines.findings import MEANINGS, Finding, FindingTotal


def findings_table(totals: Sequence[FindingTotal], cut_off: CutOff) -> Table:
    """Every class of finding with its count, amounts and a few order ids."""
    table = Table(title=f"Reconciliation as of {_utc(cut_off.as_of_ms)}, grace period {cut_off.grace_seconds} s")
    table.add_column("finding", no_wrap=True)
    for name in ("count", "ordered", "credited"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("order ids, for example", overflow="fold")
    for total in totals:
        style = "bold red" if total.is_inconsistent else "" if total.count else "dim"
        table.add_row(
            _title(total.finding),
            f"{total.count:,}",
            amount(total.order_cents),
            amount(total.credit_cents),
            "\n".join(total.sample_order_ids),
            style=style,
        )
    return table


def explanations(totals: Sequence[FindingTotal]) -> list[str]:
    """What each class of finding means that makes the books wrong."""
    return [f"{_title(total.finding)}: {MEANINGS[total.finding]}" for total in totals if total.is_inconsistent]


def _title(finding: Finding) -> str:
    return finding.value.replace("_", " ")


def amount(cents: int) -> str:
    """Cents as units of currency with two decimals; currencies are added up as if they were one."""
    units, rest = divmod(abs(cents), 100)
    return f"{'-' if cents < 0 else ''}{units:,}.{rest:02d}"


def _utc(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
