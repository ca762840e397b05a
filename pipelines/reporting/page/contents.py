"""Collects the data of the HTML report: counts over time, latencies, ages, causes, and each break with its timeline.

A break is an unhealthy order or a wrong balance.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pipelines.judging.classes import CONSISTENT, Cause, Finding
from pipelines.judging.totals import SUMMED, latency_ms

MAX_PERIODS: Final = 48
MAX_BREAKS: Final = 1_000
PERCENTILES: Final = (50, 90, 99, 100)
AGES_S: Final = (60, 600, 3_600, 86_400)

_PERIODS_MS: Final = tuple(unit * 60_000 for unit in (1, 5, 15, 60, 240, 1_440, 10_080, 43_200, 525_600))
_STEPS: Final = (
    ("ordered_at_ms", "ordered", "order database"),
    ("half_at_ms", "half message stored", "commit log"),
    ("discarded_at_ms", "half message discarded", "commit log"),
    ("delivered_at_ms", "message delivered", "commit log"),
    ("dead_at_ms", "dead letter", "commit log"),
    ("received_at_ms", "stored in the inbox", "credit database"),
    ("credited_at_ms", "credited", "credit database"),
)

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Period:
    """The orders that were placed in a period, counted by finding."""

    begins_ms: int
    healthy: int
    in_flight: int
    wrong: int

    @property
    def total(self) -> int:
        """The number of all orders."""
        return self.healthy + self.in_flight + self.wrong


@dataclass(frozen=True, slots=True)
class CauseSum:
    """The number of findings with one class and cause, and the affected amounts by currency."""

    finding: Finding
    cause: Cause | None
    count: int
    at_stake_cents: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class OrderStep:
    """A recorded step of an order. `after_ms` is the time in milliseconds since the first step."""

    at_ms: int
    after_ms: int
    what: str
    source: str


@dataclass(frozen=True, slots=True)
class BreakShown:
    """A break (an unhealthy order or a wrong balance), as shown in the report."""

    finding: Finding
    cause: Cause | None
    stage: str
    order_id: str
    customer: str
    currency: str
    order_cents: int | None
    credit_cents: int | None
    transaction_id: str
    last_error: str
    """The reason why the credit service failed to process the message in its inbox; empty if it did not fail."""
    points: int | None
    balance: int | None
    steps: tuple[OrderStep, ...]


def periods_of(rows: Iterable[Row]) -> list[Period]:
    """Returns the numbers of orders in about MAX_PERIODS periods of equal length, including empty ones.

    If the times are implausibly far apart, returns only periods with orders.
    """
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for row in rows:
        if row["period_ms"] is not None:
            counts[int(row["period_ms"])][_group(row)] += row["count"]
    if not counts:
        return []
    width = next(width for width in _PERIODS_MS if (max(counts) - min(counts)) // width < MAX_PERIODS or width == _PERIODS_MS[-1])
    together: dict[int, Counter[str]] = defaultdict(Counter)
    for begins, of_it in counts.items():
        together[begins // width * width].update(of_it)
    return [
        Period(begins, together[begins]["healthy"], together[begins]["in_flight"], together[begins]["wrong"])
        for begins in _all_or_some(together, width)
    ]


def latencies_of(rows: Iterable[Row]) -> list[tuple[int, int]]:
    """Returns percentiles of the time from order to credit as (percent, milliseconds). Returns an empty list without credits.

    The times are accurate to 20 %.
    """
    counts: Counter[int] = Counter()
    for row in rows:
        if row["latency_step"] is not None:
            counts[row["latency_step"]] += row["count"]
    return [(percent, latency_ms(_percentile(counts, percent))) for percent in PERCENTILES] if counts else []


def ages_of(rows: Iterable[Row], as_of_ms: int) -> list[tuple[int | None, int]]:
    """Returns the number of in-flight and overdue orders per age group, as (maximum age in seconds, count).

    The maximum age of the last group is None.
    """
    counts: Counter[int | None] = Counter()
    for row in rows:
        if row["finding"] in (Finding.IN_FLIGHT, Finding.OVERDUE):
            began = min((int(row[name]) for name, _, _ in _STEPS if row[name] is not None), default=as_of_ms)
            counts[next((age for age in AGES_S if as_of_ms - began <= age * 1000), None)] += row["count"]
    return [(age, counts[age]) for age in (*AGES_S, None)] if counts else []


def causes_of(rows: Iterable[Row]) -> list[CauseSum]:
    """Returns the findings by class and cause, sorted by affected amount and count, highest first."""
    grouped: dict[tuple[Finding, Cause | None], list[Row]] = defaultdict(list)
    for row in rows:
        if row["finding"] not in SUMMED:
            grouped[Finding(row["finding"]), _cause(row)].append(row)
    sums = [_cause_sum(*key, of_it) for key, of_it in grouped.items()]
    return sorted(sums, key=lambda found: (-sum(cents for _, cents in found.at_stake_cents), -found.count, found.finding))


def breaks_of(rows: Iterable[Row], max_breaks: int = MAX_BREAKS) -> tuple[list[BreakShown], int]:
    """Returns the first `max_breaks` breaks, sorted by class and order id, and the total number of breaks.

    Orders in flight, which are not faults, are last.
    """
    breaks = [row for row in rows if row["finding"] not in SUMMED]
    breaks.sort(key=lambda row: (row["finding"] in CONSISTENT, row["finding"], row["order_id"] or "", row["customer"] or ""))
    return [_break(row) for row in breaks[:max_breaks]], len(breaks)


def _all_or_some(begins: Collection[int], width: int) -> Iterable[int]:
    is_plausible = (max(begins) - min(begins)) // width <= 2 * MAX_PERIODS
    return range(min(begins), max(begins) + 1, width) if is_plausible else sorted(begins)[-MAX_PERIODS:]


def _percentile(counts: Counter[int], percent: int) -> int:
    wanted = -(-counts.total() * percent // 100)
    seen = 0
    for step in sorted(counts):
        seen += counts[step]
        if seen >= wanted:
            return step
    return max(counts)


def _group(row: Row) -> str:
    if row["finding"] == Finding.IN_FLIGHT:
        return "in_flight"
    return "healthy" if row["finding"] in CONSISTENT else "wrong"


def _cause(row: Row) -> Cause | None:
    return None if row["cause"] is None else Cause(row["cause"])


def _cause_sum(finding: Finding, cause: Cause | None, rows: Sequence[Row]) -> CauseSum:
    at_stake: Counter[str] = Counter()
    for row in rows:
        at_stake[row["currency"] or ""] += int(row["at_stake_cents"] or 0)
    money = tuple(sorted((currency, cents) for currency, cents in at_stake.items() if cents))
    return CauseSum(finding, cause, sum(row["count"] for row in rows), money)


def _break(row: Row) -> BreakShown:
    began = min((int(row[name]) for name, _, _ in _STEPS if row[name] is not None), default=0)
    steps = [
        OrderStep(int(row[name]), int(row[name]) - began, what, source) for name, what, source in _STEPS if row[name] is not None
    ]
    return BreakShown(
        Finding(row["finding"]),
        _cause(row),
        row["stage"],
        row["order_id"] or "",
        row["customer"] or "",
        row["currency"] or "",
        _whole(row["order_cents"]),
        _whole(row["credit_cents"]),
        row["transaction_id"] or "",
        row["last_error"] or "",
        _whole(row["points"]),
        _whole(row["balance"]),
        tuple(sorted(steps, key=lambda step: step.at_ms)),
    )


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)
