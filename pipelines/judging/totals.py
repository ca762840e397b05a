"""Sums the findings about healthy orders, keeps all other findings as rows, and computes the totals and the failing classes."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.judging.classes import CONSISTENT, Cause, Finding
from pipelines.judging.judge import FINDING_COLUMNS
from pipelines.spark.sql_text import if_true, one_of

SAMPLES: Final = 3
LATENCY_STEPS: Final = 4
"""The number of latency histogram buckets per power of two. With 4, the bounds of a bucket differ by less than 20 %."""

SUMMED: Final = (Finding.MATCHED, Finding.ROLLED_BACK, Finding.REVERSED, Finding.ENDED)
"""The final and healthy classes, whose findings are summed. Findings of other classes are listed one by one."""
_KEYS: Final = ("finding", "cause", "currency")
_SUMS: Final = ("order_count", "order_cents", "credit_count", "credit_cents")
_ONE: Final = tuple(name for name in FINDING_COLUMNS if name not in (*_KEYS, *_SUMS))


@dataclass(frozen=True, slots=True)
class Money:
    """The amounts of a class in one currency. `currency` is "" if unknown."""

    currency: str
    order_cents: int = 0
    credit_cents: int = 0
    at_stake_cents: int = 0
    count: int = 0


@dataclass(frozen=True, slots=True)
class FindingTotal:
    """The counts and amounts of the findings of one class."""

    finding: Finding
    count: int = 0
    money: tuple[Money, ...] = ()
    sample_order_ids: tuple[str, ...] = ()
    order_count: int = 0
    """The number of order rows."""
    credit_count: int = 0
    """The number of credits."""
    causes: tuple[tuple[Cause, int], ...] = ()
    """Pairs of a cause and the number of its findings, most frequent first."""
    oldest_ms: int | None = None
    """The start of the oldest finding, in milliseconds since the epoch. It is set only for classes that are listed one by one."""

    @property
    def repaired_count(self) -> int:
        """The number of findings that are healthy because of a repair."""
        return dict(self.causes).get(Cause.REPAIRED, 0)


def summed(found: DataFrame, period_ms: int) -> DataFrame:
    """Sums the findings about healthy orders. Keeps all other findings as rows.

    Columns: FINDING_COLUMNS, count, period_ms (the start of the period of the order's time) and latency_step (see `latency_ms`).
    Sums have no order id.
    """
    taken = "CAST(credited_at_ms AS decimal(38,0)) - ordered_at_ms + 1"
    is_measured = f"finding = '{Finding.MATCHED}' AND credited_at_ms >= ordered_at_ms"
    steps = if_true(is_measured, f"CAST(floor(log2({taken}) * {LATENCY_STEPS}) AS int)")
    one = if_true(f"finding NOT IN {one_of(SUMMED)}", f"struct({', '.join(_ONE)})")
    began = f"ordered_at_ms div {period_ms} * {period_ms}"
    rows = found.selectExpr(*_KEYS, *_SUMS, f"{began} AS period_ms", f"{steps} AS latency_step", f"{one} AS one")
    keys = (*_KEYS, "period_ms", "latency_step", "one")
    sums = [F.expr(f"sum(CAST({name} AS decimal(38,0))) AS {name}") for name in _SUMS]
    together = rows.groupBy(*keys).agg(F.expr("count(1) AS count"), *sums)
    return together.select(*_KEYS, *_SUMS, "count", "period_ms", "latency_step", "one.*")


def summed_here(found: Iterable[Mapping[str, Any]], period_ms: int) -> list[dict[str, Any]]:
    """Returns the same rows as `summed` for findings in memory."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for row in found:
        one = (None,) * len(_ONE) if row["finding"] in SUMMED else tuple(row[name] for name in _ONE)
        groups[*(row[name] for name in _KEYS), _period_ms(row["ordered_at_ms"], period_ms), _latency_step(row), *one].append(row)
    names = (*_KEYS, "period_ms", "latency_step", *_ONE)
    return [
        dict(zip(names, key, strict=True)) | {"count": len(rows)} | {name: _sum(rows, name) for name in _SUMS}
        for key, rows in groups.items()
    ]


def _sum(rows: Iterable[Mapping[str, Any]], name: str) -> int | None:
    values = [row[name] for row in rows if row[name] is not None]
    return sum(values) if values else None


def _period_ms(at_ms: int | None, period_ms: int) -> int | None:
    """Returns the start of the period that contains `at_ms`, in milliseconds. Rounds towards 0 like Spark's `div`."""
    if at_ms is None:
        return None
    begins_ms = abs(at_ms) // period_ms * period_ms
    return begins_ms if at_ms >= 0 else -begins_ms


def _latency_step(row: Mapping[str, Any]) -> int | None:
    ordered, credited = row["ordered_at_ms"], row["credited_at_ms"]
    if row["finding"] != Finding.MATCHED or ordered is None or credited is None or credited < ordered:
        return None
    return math.floor(math.log2(credited - ordered + 1) * LATENCY_STEPS)


def latency_ms(step: int) -> int:
    """Returns the latency in the middle of a step of the logarithmic scale, in milliseconds."""
    return round(2 ** ((step + 0.5) / LATENCY_STEPS)) - 1


def totals_of(rows: Iterable[Mapping[str, Any]], kinds: Sequence[Finding]) -> list[FindingTotal]:
    """Returns the totals of the classes `kinds`, and of other classes in rows of `summed`, in the order of `Finding`."""
    by_finding: dict[Finding, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        by_finding[Finding(row["finding"])].append(row)
    return [_total(kind, by_finding.get(kind, [])) for kind in Finding if kind in kinds or kind in by_finding]


def _total(finding: Finding, rows: Sequence[Mapping[str, Any]]) -> FindingTotal:
    causes: dict[Cause, int] = defaultdict(int)
    for row in rows:
        if row["cause"] is not None:
            causes[Cause(row["cause"])] += row["count"]
    began = [at for row in rows if (at := _began_ms(row)) is not None]
    order_ids = sorted(row["order_id"] for row in rows if row["order_id"] is not None)
    return FindingTotal(
        finding,
        sum(row["count"] for row in rows),
        _money(rows),
        tuple(order_ids[:SAMPLES]),
        sum(int(row["order_count"] or 0) for row in rows),
        sum(int(row["credit_count"] or 0) for row in rows),
        tuple(sorted(causes.items(), key=lambda item: (-item[1], item[0]))),
        min(began, default=None),
    )


def _money(rows: Sequence[Mapping[str, Any]]) -> tuple[Money, ...]:
    by_currency: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        by_currency[row["currency"] or ""].append(row)
    return tuple(
        Money(
            currency,
            sum(int(row["order_cents"] or 0) for row in of_it),
            sum(int(row["credit_cents"] or 0) for row in of_it),
            sum(int(row["at_stake_cents"] or 0) for row in of_it),
            sum(row["count"] for row in of_it),
        )
        for currency, of_it in sorted(by_currency.items())
    )


def _began_ms(row: Mapping[str, Any]) -> int | None:
    times = (row["ordered_at_ms"], row["half_at_ms"], row["delivered_at_ms"], row["received_at_ms"], row["credited_at_ms"])
    return min((int(at) for at in times if at is not None), default=None)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The set of failing classes: unhealthy classes that are not allowed, and healthy classes in `failing`."""

    allowed: frozenset[Finding] = frozenset()
    failing: frozenset[Finding] = frozenset()

    def fails(self, total: FindingTotal) -> bool:
        """Returns True if this total makes the reconciliation fail."""
        if not total.count:
            return False
        return total.finding in self.failing or (total.finding not in CONSISTENT and total.finding not in self.allowed)

    def is_consistent(self, totals: Iterable[FindingTotal]) -> bool:
        """Returns True if no total fails."""
        return not any(self.fails(total) for total in totals)
